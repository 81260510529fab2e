// Shows one task: what is asked, by whom, until when, and how it was decided.

import { element, foreign } from "./dom.js";
import { isOver, exactTime, parseTime, timeFromNow } from "./times.js";
import { t, tWith } from "./texts.js";

/** The status as a coloured word. */
export function statusBadge(status) {
  return element("span", { class: `status ${status}` }, t(`status ${status}`));
}

/** When a task is due, with a mark if that is over. */
export function due(task) {
  const date = parseTime(task.decisionBy);
  if (!date) return null;
  const overdue = task.status === "pending" && isOver(date);
  return element("span", overdue ? { class: "overdue" } : {},
    overdue ? element("strong", {}, t("overdue"), " · ") : null, timeFromNow(date), " · ", exactTime(date));
}

function facts(task) {
  const rows = [["requestedBy", foreign(task.requester)], ["approver", foreign(task.approver)], ["due", due(task)]];
  return element("dl", { class: "facts" }, rows.filter(([, value]) => value)
    .map(([name, value]) => [element("dt", {}, t(name)), element("dd", {}, value)]));
}

/** A text of a task with its Markdown. */
async function formatted(text, attributes) {
  const { render } = await import("./markdown.js");
  return element("div", { ...attributes, class: `prose ${attributes.class ?? ""}` }, render(text));
}

/** How a task was decided, by whom, when, and the comment. */
async function outcome(task) {
  if (task.status === "pending") return null;
  const date = parseTime(task.decisionMade);
  const key = task.decidedBy ? `decided ${task.status} by` : `decided ${task.status}`;
  return element("section", { class: `outcome ${task.status}`, id: "outcome", tabindex: -1, "aria-label": t("decision") },
    element("p", {}, element("strong", {}, tWith(key, { who: task.decidedBy ? foreign(task.decidedBy) : "" }))),
    date ? element("p", { class: "soft" }, timeFromNow(date), " · ", exactTime(date)) : null,
    task.comment ? await formatted(task.comment, { class: "comment" }) : null);
}

/** The task. `actions` is what the reader can do with it. */
export async function taskArticle(task, ...actions) {
  return element("article", { class: "card task" },
    element("p", { class: "kicker" }, statusBadge(task.status)),
    element("h1", { dir: "auto" }, task.title),
    await outcome(task),
    facts(task),
    task.description.trim() ? await formatted(task.description, { id: "description" }) : null,
    ...actions);
}
