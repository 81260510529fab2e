// The audit logs of both services.

import { listAudit } from "./admin-api.js";
import { action, choiceFilter, list, secondOf, sectionHeading, textFilter, userLink } from "./admin-list.js";
import { $, element, foreign, notify } from "./dom.js";
import { numberText, t } from "./texts.js";
import { parseTime, timeZone, toApi, toLocalInput } from "./times.js";

/** The entries that a file has at most. */
const MOST = 10_000;
const PORTION = 1_000;
/** The columns of a file: the fields of the API. */
const FIELDS = ["at", "action", "actorKind", "actor", "subjectKind", "subject", "proof", "clientAddress", "requestId", "detail"];

/** The actions to choose from. Others can be typed. */
const ACTIONS = {
  users: [
    "user-created", "user-updated", "tokens-revoked", "verification-requested", "email-verified", "signed-in",
    "sign-in-refused", "session-started", "session-ended", "session-replayed", "key-created", "key-ended",
    "key-confirmed", "password-changed", "password-change-refused",
    "password-reset-requested", "password-reset", "user-deletion-requested", "user-deletion-cancelled",
    "user-deletion-failed", "user-deleted", "first-admin-made",
  ],
  tasks: [
    "task-created", "task-edited", "task-approved", "task-rejected", "task-cancelled", "webhook-registered", "webhook-removed",
    "webhook-tested",
    "delivery-redelivered", "delivery-cancelled", "deliveries-paused", "deliveries-resumed", "user-erased",
  ],
};

const idOf = (kind, id) => {
  if (!id) return "–";
  return kind === "task" ? element("a", { href: `/tasks?taskId=${id}` }, element("code", {}, id)) : userLink(id);
};

const detailOf = ({ detail }) => (detail ? element("code", {}, foreign(JSON.stringify(detail))) : "–");

const columns = () => [
  { label: t("time"), sort: "at", cell: ({ at }) => secondOf(at) },
  { label: t("action"), sort: "action", cell: ({ action }) => element("span", { title: action }, t(`action ${action}`, {}, action)) },
  { label: t("actor"), cell: ({ actorKind, actor }) => [t(`actor ${actorKind}`, {}, actorKind), " ", actor ? idOf("user", actor) : ""] },
  { label: t("subject"), cell: ({ subjectKind, subject }) => idOf(subjectKind, subject) },
  { label: t("details"), cell: detailOf },
  { label: t("proof"), cell: ({ proof }) => (proof ? element("span", { title: proof }, t(`proof ${proof}`, {}, proof)) : "–") },
  { label: t("address"), cell: ({ clientAddress }) => clientAddress ?? "–" },
  { label: t("requestId"), cell: ({ requestId }) => element("code", {}, foreign(requestId)) },
];

const idFilter = (id) => textFilter(id, { spellcheck: "false" });
/** A time of a field or of the URL as the API has it. What is no time filters nothing. */
const timeIn = (value) => toApi(parseTime(value)) ?? "";
/** The URL has a time in UTC, so that it means the same to everyone who gets it. */
const timeFilter = (id) => ({
  id, help: t("zoneHelp", { zone: timeZone() }), toField: (value) => toLocalInput(parseTime(value)), fromField: timeIn,
  field: element("input", { id, type: "datetime-local", min: "0001-01-01T00:00", max: "9999-12-31T23:59" }),
});

/** A value in a line of CSV. A text that begins like a formula would be one in a table. */
function csvValue(value) {
  const text = value === null || value === undefined ? "" : typeof value === "object" ? JSON.stringify(value) : String(value);
  return `"${text.replace(/^[=+\-@\t\r]/, "'$&").replace(/"/g, '""')}"`;
}

const csv = (rows) => [FIELDS, ...rows.map((row) => FIELDS.map((field) => row[field]))]
  .map((values) => `${values.map(csvValue).join(",")}\r\n`).join("");

/** All entries that filters let through, as far as a file has them, and whether there are more. */
async function loadAll(filters) {
  // Entries that are written meanwhile move others to the next page.
  const rows = new Map();
  let offset = "0";
  while (offset && rows.size < MOST) {
    const page = await listAudit({ ...filters, offset, limit: PORTION });
    for (const row of page.rows) rows.set(row.id, row);
    offset = page.next;
  }
  return { rows: [...rows.values()], hasMore: Boolean(offset) };
}

function save(text) {
  const url = URL.createObjectURL(new Blob([text], { type: "text/csv" }));
  element("a", { href: url, download: "audit.csv" }).click();
  setTimeout(() => URL.revokeObjectURL(url), 60_000);
}

/** Midnight of today, or of a day before. */
function daysAgo(days) {
  const now = new Date();
  return toLocalInput(new Date(now.getFullYear(), now.getMonth(), now.getDate() - days));
}

export function show(view, state) {
  const actions = element("datalist", { id: "actions" });
  const showActions = ({ of }) => {
    if (actions.dataset.of === (of || "users")) return;
    actions.dataset.of = of || "users";
    actions.replaceChildren(...ACTIONS[actions.dataset.of].map((value) => element("option", { value, label: t(`action ${value}`) })));
  };
  const filtersOf = (current) => ({ ...current, after: timeIn(current.after), before: timeIn(current.before) });
  const load = (current) => listAudit(filtersOf(current));
  const entries = list({
    label: t("section audit"), state, sort: "at:-1", sorts: [["at", t("time")], ["action", t("action")]], columns, load,
    loaded: showActions,
    filters: [
      choiceFilter("of", [["", t("auditOfUsers")], ["tasks", t("auditOfTasks")]]),
      textFilter("action", { list: "actions" }), idFilter("actor"), idFilter("subject"), textFilter("requestId"),
      timeFilter("after"), timeFilter("before"),
    ],
  });
  const since = (text, days) => action(text, () => {
    $("before").value = "";
    $("after").value = daysAgo(days);
    entries.go({ after: timeIn($("after").value), before: "" });
  }, () => {});
  const filtered = () => Object.fromEntries(["of", "action", "actor", "subject", "requestId", "after", "before"].map((id) => [id, $(id).value.trim()]));
  const download = action(t("download"), () => loadAll(filtersOf(filtered())), ({ rows, hasMore }) => {
    save(csv(rows));
    if (hasMore) notify(t("downloadedMost", { count: numberText(MOST) }));
  });
  view.append(sectionHeading("audit"), element("div", { class: "actions" }, since(t("today"), 0), since(t("lastDays"), 6), download),
    ...entries.elements, actions);
  return null;
}
