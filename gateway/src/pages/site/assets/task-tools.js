// What people who are signed in can do with a task besides deciding it.

import { element } from "./dom.js";
import { approverLinkOf } from "./session.js";
import { editDialog, handOverDialog, linkDialog, newLinkDialog, withdrawDialog } from "./task-form.js";
import { webhooksCard } from "./webhooks.js";
import { t } from "./texts.js";

/** Exported here, because a script of its own would have the module a second time. */
export const withdraw = withdrawDialog;

/** Buttons and webhooks. `changed` is called after a change of the task. */
export function ownerTools(task, changed) {
  const button = (text, open) => element("button", { type: "button", class: "plain", onclick: () => open(task, changed) }, t(text));
  const isOnlyApprover = task.isApprover && !task.isRequester;
  const edit = isOnlyApprover ? button("handOver", handOverDialog) : button("edit", editDialog);
  const secret = approverLinkOf(task);
  const link = secret ? button("approverLink", () => linkDialog(task, secret)) : null;
  // Beside the link, too, which another tab may have replaced.
  const newLink = task.canDecide && !isOnlyApprover ? button("newApproverLink", newLinkDialog) : null;
  const withdrawal = isOnlyApprover ? null : button("withdraw", withdrawDialog);
  return element("section", { "aria-label": t("more") },
    task.status === "pending" ? element("div", { class: "actions card" }, edit, link, newLink, withdrawal) : null,
    // An approver cannot know what that is.
    isOnlyApprover ? null : webhooksCard(task));
}
