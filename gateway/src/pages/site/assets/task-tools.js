// What people who are signed in can do with a task besides deciding it.

import { element } from "./dom.js";
import { editDialog, handOverDialog } from "./task-form.js";
import { webhooksCard } from "./webhooks.js";
import { t } from "./texts.js";

/** Buttons and webhooks. `changed` is called after a change of the task. */
export function ownerTools(task, changed) {
  const button = (text, open) => element("button", { type: "button", class: "plain", onclick: () => open(task, changed) }, t(text));
  const isOnlyApprover = task.isApprover && !task.isRequester;
  const edit = isOnlyApprover ? button("handOver", handOverDialog) : button("edit", editDialog);
  return element("section", { "aria-label": t("more") },
    task.status === "pending" ? element("div", { class: "actions card" }, edit) : null,
    webhooksCard(task));
}
