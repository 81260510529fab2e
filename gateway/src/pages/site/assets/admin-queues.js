// What waits: messages, deliveries, deletions and notifications.

import { loadQueues } from "./admin-api.js";
import { badge, linkTo, sectionHeading, table } from "./admin-list.js";
import { failed } from "./admin-state.js";
import { element, forgetFailure, isSaid } from "./dom.js";
import { locale, t } from "./texts.js";

const number = new Intl.NumberFormat(locale);
const seconds = new Intl.NumberFormat(locale, { style: "unit", unit: "second", maximumFractionDigits: 1 });

const queueColumns = [
  { label: t("queue"), cell: ({ name }) => element("code", {}, name) },
  { label: t("state"), cell: ({ connected }) => badge(t(connected ? "connected" : "notConnected"), connected ? "good" : "bad") },
  { label: t("messages"), cell: ({ messages }) => number.format(messages) },
  { label: t("deadLetters"), cell: ({ deadLetters }) => (deadLetters > 0 ? badge(number.format(deadLetters), "bad") : "0") },
];

const jobColumns = [
  { label: t("job"), cell: ({ name }) => t(`jobs ${name}`, {}, name) },
  { label: t("open"), cell: ({ open }) => number.format(open) },
  { label: t("oldestDue"), cell: ({ overdueSeconds }) => seconds.format(overdueSeconds) },
];

function backlog(deliveries) {
  const rows = [
    [t("pendingNumber"), number.format(deliveries.pending)], [t("dueNumber"), number.format(deliveries.due)],
    [t("oldestDue"), seconds.format(deliveries.oldestDueSeconds)],
    [t("pausedNumber"), number.format(deliveries.paused)],
    [t("pausedHosts"), deliveries.pausedHosts > 0
      ? linkTo({ view: "hosts", status: "paused" }, number.format(deliveries.pausedHosts)) : "0"],
    [t("parkedNumber"), deliveries.parked > 0 ? badge(number.format(deliveries.parked), "bad") : "0"],
  ];
  return element("dl", { class: "facts" }, rows.map(([name, value]) => [element("dt", {}, name), element("dd", {}, value)]));
}

export function show(view) {
  const body = element("div", { id: "queues", "aria-busy": "true" });
  let shown = "";
  const refresh = async () => {
    const [tasks, users] = await loadQueues().catch((error) => {
      if (!isSaid(error)) failed(error);
      throw error;
    });
    forgetFailure();
    const text = JSON.stringify([tasks, users]);
    body.removeAttribute("aria-busy");
    if (text === shown) return;
    shown = text;
    body.replaceChildren(
      element("section", { class: "card" }, element("h2", {}, t("deliveries")), backlog(tasks.deliveries)),
      element("section", { class: "card" }, element("h2", {}, t("jobsHead")), table(t("jobsHead"), jobColumns, users.jobs)),
      element("section", { class: "card" }, element("h2", {}, t("queuesHead")),
        table(t("queuesHead"), queueColumns, [...tasks.queues, ...users.queues]),
        element("p", { class: "soft small" }, t("queuesHelp"))));
  };
  view.append(sectionHeading("queues"), body);
  refresh().catch(() => {});
  return refresh;
}
