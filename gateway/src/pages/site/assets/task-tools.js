// What people who are signed in can do with a task besides deciding it.

import { element, notLoaded } from "./dom.js";
import { approverLinkOf } from "./session.js";
import { webhooksCard } from "./webhooks.js";
import { t } from "./texts.js";

/** Opens a dialog, unless one is open. The script of the dialogs is loaded with the first one. */
async function open(name, ...what) {
  const dialogs = await import("./task-form.js").catch(notLoaded);
  if (!document.querySelector("dialog")) dialogs[name]?.(...what);
}

/** Buttons and webhooks. `changed` is called after a change of the task. */
export function ownerTools(task, changed) {
  const button = (text, dialog, more = changed) => element("button", { type: "button", class: "plain", onclick: () => open(dialog, task, more) }, t(text));
  const isOnlyApprover = task.isApprover && !task.isRequester;
  const edit = isOnlyApprover ? button("handOver", "handOverDialog") : button("edit", "editDialog");
  const secret = approverLinkOf(task);
  const link = secret ? button("approverLink", "linkDialog", secret) : null;
  // Beside the link, too, which another tab may have replaced.
  const newLink = task.canDecide && !isOnlyApprover ? button("newApproverLink", "newLinkDialog") : null;
  const withdrawal = isOnlyApprover ? null : button("withdraw", "withdrawDialog");
  return element("section", { "aria-label": t("more") },
    task.status === "pending" ? element("div", { class: "actions card" }, edit, link, newLink, withdrawal) : null,
    // An approver cannot know what that is.
    isOnlyApprover ? null : webhooksCard(task));
}
