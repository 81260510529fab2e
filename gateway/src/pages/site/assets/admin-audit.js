// The audit logs of both services.

import { listAudit } from "./admin-api.js";
import { choiceFilter, heading, list, secondOf, textFilter, userLink } from "./admin-list.js";
import { element, foreign } from "./dom.js";
import { t } from "./texts.js";
import { fromLocalInput, toApi } from "./times.js";

/** The actions to choose from. Others can be typed. */
const ACTIONS = {
  users: [
    "user-created", "user-updated", "tokens-revoked", "verification-requested", "email-verified", "signed-in",
    "sign-in-refused", "session-started", "session-ended", "session-replayed", "password-changed", "password-change-refused",
    "password-reset-requested", "password-reset", "user-deletion-requested", "user-deletion-cancelled",
    "user-deletion-failed", "user-deleted", "first-admin-made",
  ],
  tasks: [
    "task-created", "task-edited", "task-approved", "task-rejected", "webhook-registered", "webhook-removed",
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
  { label: t("proof"), cell: ({ proof }) => proof ?? "–" },
  { label: t("address"), cell: ({ clientAddress }) => clientAddress ?? "–" },
  { label: t("requestId"), cell: ({ requestId }) => element("code", {}, foreign(requestId)) },
];

const idFilter = (id) => textFilter(id, { maxlength: 24, spellcheck: "false" });
/** A time of a filter as the API has it. What is no time filters nothing. */
const timeIn = (value) => toApi(fromLocalInput(value));
const timeFilter = (id) => ({ id, field: element("input", { id, type: "datetime-local", max: "9999-12-31T23:59" }) });

export function show(view, state) {
  const actions = element("datalist", { id: "actions" });
  const showActions = ({ of }) => {
    if (actions.dataset.of === (of || "users")) return;
    actions.dataset.of = of || "users";
    actions.replaceChildren(...ACTIONS[actions.dataset.of].map((value) => element("option", { value })));
  };
  const load = (current) => listAudit({ ...current, after: timeIn(current.after), before: timeIn(current.before) });
  const entries = list({
    label: t("section audit"), state, sort: "at:-1", sorts: [["at", t("time")], ["action", t("action")]], columns, load,
    loaded: showActions,
    filters: [
      choiceFilter("of", [["", t("auditOfUsers")], ["tasks", t("auditOfTasks")]]),
      textFilter("action", { list: "actions" }), idFilter("actor"), idFilter("subject"), textFilter("requestId"),
      timeFilter("after"), timeFilter("before"),
    ],
  });
  view.append(heading(t("section audit")), ...entries.elements, actions);
  return null;
}
