// Where a person goes after a decision.

import { element } from "./dom.js";
import { token } from "./session.js";
import { nextTask } from "./task-api.js";
import { shortTitle } from "./task-view.js";
import { t } from "./texts.js";

/** Adds links to the outcome: to the list, and to the next task if there is one. */
export async function wayOn(outcome, { id }) {
  const links = element("div", { class: "actions way-on" }, element("a", { class: "button plain", href: "/" }, t("backToTasks")));
  outcome.append(links);
  const next = token() ? await nextTask(id).catch(() => null) : null;
  if (!next) return;
  links.prepend(element("a", { class: "button", href: `/tasks?taskId=${next.id}` }, t("nextTask")));
  links.after(element("p", { class: "soft small", dir: "auto" }, shortTitle(next)));
}
