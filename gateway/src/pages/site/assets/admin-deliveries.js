// The deliveries to one host, or to all.

import { cancelDelivery, cancelPending, listDeliveries, loadHost, loadPausedHosts, sendDelivery } from "./admin-api.js";
import { countOf, hostState, nextAttemptOf, notifyChanged, pauseButton, sendFailedButton } from "./admin-hosts.js";
import { action, badge, choiceFilter, confirm, heading, linkTo, list, rerender, timeOf } from "./admin-list.js";
import { element, foreign, notify } from "./dom.js";
import { t, tWith } from "./texts.js";

/** The host of a URL, as the API names it. */
const hostOf = (url) => new URL(url).hostname.replace(/\.+$/, "");

const KINDS = { pending: "wait", sent: "good", fail: "bad" };

/** What a receiver responded, or why it did not: the API says it in English. */
const english = (text) => element("bdi", { lang: "en" }, text);

/** The attempts of a delivery. The newest one is shown, the others when they are opened. */
function attempts({ attempts: all }) {
  if (all.length === 0) return t("noAttempt");
  const result = ({ at, durationMs, statusCode, error, response }) => element("span", {},
    timeOf(at), ` · ${durationMs} ms · `, english([statusCode, error, response].filter(Boolean).join(" · ")));
  const newest = all.at(-1);
  return element("details", {},
    element("summary", {}, t("attempts", { count: all.length }), " · ", english(String(newest.error ?? newest.statusCode ?? ""))),
    element("ol", {}, all.map((attempt) => element("li", {}, result(attempt)))));
}

function buttons(delivery, refresh) {
  const { id, url, status } = delivery;
  const cancel = async () => await confirm(t("cancelDelivery"), tWith("cancelDeliveryText", { url: foreign(url) }), t("cancelDelivery"))
    && cancelDelivery(id);
  const done = (text) => async () => {
    await refresh();
    notify(t(text), "good");
  };
  return element("div", { class: "actions" }, action(t("sendAgain"), () => sendDelivery(id), done("isSentAgain")),
    status === "pending" ? action(t("cancelDelivery"), cancel, done("isCancelled")) : null);
}

const columns = (refresh) => [
  { label: t("url"), cell: ({ url }) => element("code", {}, foreign(url)) },
  { label: t("event"), cell: ({ taskStatus }) => t(`event ${taskStatus}`) },
  { label: t("state"), cell: ({ status }) => badge(t(`webhook ${status}`), KINDS[status]) },
  { label: t("created"), cell: ({ created }) => timeOf(created) },
  { label: t("attemptsHead"), cell: attempts },
  { label: t("nextAttempt"), cell: nextAttemptOf },
  { label: t("actions"), cell: (delivery) => buttons(delivery, refresh) },
];

function cancelAllButton({ host }, done) {
  const cancel = async () => {
    const isSure = await confirm(t("cancelAll"), tWith("cancelAllText", { host: foreign(host) }), t("cancelAll"));
    return isSure && cancelPending(host);
  };
  return action(t("cancelAll"), cancel, async (result) => {
    await done();
    notifyChanged("cancelledNumber", result);
  }, { class: "reject" });
}

function hostCard(row, reload) {
  const facts = [
    [t("state"), hostState(row)], [t("pendingNumber"), countOf(row.pending)], [t("retryingNumber"), countOf(row.retrying)],
    [t("failedNumber"), countOf(row.failed)], [t("nextAttempt"), nextAttemptOf(row)],
  ];
  return [
    element("dl", { class: "facts" }, facts.map(([name, value]) => [element("dt", {}, name), element("dd", {}, value)])),
    row.paused ? element("p", { class: "soft" }, t("pausedHelp")) : "",
    element("div", { class: "actions" }, pauseButton(row, reload), row.failed > 0 ? sendFailedButton(row, reload) : null,
      row.pending > 0 ? cancelAllButton(row, reload) : null)];
}

export function show(view, state) {
  const { host = "" } = state;
  const card = element("section", { class: "card", "aria-label": t("host"), hidden: true });
  let shown = "";
  /** The deliveries with whether their host is paused, and the host of the card. */
  const load = async (current) => {
    const [page, row, paused] = await Promise.all([listDeliveries(current), host ? loadHost(host) : null, host ? [] : loadPausedHosts()]);
    const pausedAt = ({ url }) => (row ?? paused.find((one) => one.host === hostOf(url)))?.paused;
    return { ...page, rows: page.rows.map((delivery) => ({ ...delivery, paused: pausedAt(delivery) })), row };
  };
  const showCard = (_, __, { row }) => {
    const text = JSON.stringify(row);
    if (row && text !== shown) rerender(card, ...hostCard(row, deliveries.refresh));
    card.hidden = !row;
    shown = text;
  };
  // Deliveries of a host are listed by their status.
  const statuses = host ? ["pending", "fail"] : ["", "pending", "fail", "sent"];
  const deliveries = list({
    label: t("deliveries"), state: { ...state, status: state.status ?? statuses[0] }, columns, load, loaded: showCard,
    filters: [choiceFilter("status", statuses.map((status) => [status, status ? t(`webhook ${status}`) : t("all")]))],
  });
  view.append(element("p", {}, linkTo({ view: "hosts" }, t("toHosts"))),
    heading(host ? foreign(host) : t("allDeliveries")), card, ...deliveries.elements);
  return deliveries.refresh;
}
