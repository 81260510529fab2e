// The link with which an approver decides, to be passed on.

import { element, foreign } from "./dom.js";
import { t, tWith } from "./texts.js";

const COPIED = 4_000;

/** The secret is in the fragment, which browsers don't send to servers. */
const linkOf = ({ id, approverSecret }) => `${location.origin}/tasks#taskId=${id}&secret=${approverSecret}`;

async function copy(field, button) {
  field.select();
  try {
    await navigator.clipboard.writeText(field.value);
  } catch {
    // Without TLS there is no clipboard for scripts, but the older way still works. If not, the link is selected for the person.
    if (!document.execCommand("copy")) return;
  }
  button.textContent = t("copied");
  setTimeout(() => { button.textContent = t("copyLink"); }, COPIED);
}

/** The approver's link with a button that copies it. */
export function linkPanel(task) {
  const field = element("input", { id: "link", readonly: true, value: linkOf(task), "aria-label": t("approverLink") });
  const button = element("button", { type: "button", onclick: () => copy(field, button), "aria-live": "polite" }, t("copyLink"));
  const share = () => navigator.share({ title: task.title, url: field.value }).catch(() => {});
  return element("div", {},
    element("h2", { id: "dialog-title" }, t("approverLink")),
    element("p", {}, tWith("approverLinkHelp", { who: foreign(task.approver) })),
    element("div", { class: "copy" }, field, button,
      navigator.share ? element("button", { type: "button", class: "plain", onclick: share }, t("share")) : null));
}
