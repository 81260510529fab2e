// Shows one task: what is asked, by whom, until when, and how it was decided.

import { element, foreign } from "./dom.js";
import { isOver, parseTime, timeFromNow, zonedTime } from "./times.js";
import { t, tWith } from "./texts.js";

/** Longer titles are smaller, and folded where they take many lines. */
const LONG_TITLE = 120;
/** Where a title is only repeated, it has at most this length. */
const REPEATED_TITLE = 80;

/** A title within another text. */
export function shortTitle({ title }) {
  return foreign(title.length > REPEATED_TITLE ? `${title.slice(0, REPEATED_TITLE).replace(/[\ud800-\udbff]$/, "")}…` : title);
}

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
    overdue ? element("strong", {}, t("overdue"), " · ") : null, timeFromNow(date), " · ", zonedTime(date));
}

function facts(task, changed) {
  const rows = [
    ["requester", "requestedBy", foreign(task.requester)], ["approver", "approver", foreign(task.approver)],
    ["decisionBy", "due", due(task)],
  ];
  return element("dl", { class: "facts" }, rows.filter(([, , value]) => value).map(([field, name, value]) =>
    [element("dt", {}, t(name)), element("dd", changed.includes(field) ? { class: "changed" } : {}, value)]));
}

/** A text of a task with its Markdown, or as it was written if the module does not arrive. */
async function formatted(text, attributes) {
  const nodes = await import("./markdown.js").then(({ render }) => render(text), () =>
    element("p", { class: "plain-text", dir: "auto" }, text));
  return element("div", { ...attributes, class: `prose ${attributes.class ?? ""}` }, nodes);
}

/** Whether somebody else decided than the approver. Who withdraws a task does not decide it. */
export const isInPlace = ({ status, decidedBy, approver }) => status !== "cancelled" && decidedBy && decidedBy.toLowerCase() !== approver.toLowerCase();

function verdict(task, isOwn) {
  const inPlace = isInPlace(task);
  const values = { who: foreign(task.decidedBy ?? ""), approver: foreign(task.approver) };
  const by = isOwn ? "own" : task.decidedBy ? "by" : "";
  return tWith(["decided", task.status, by, inPlace && by ? "inPlace" : ""].filter(Boolean).join(" "), values);
}

/** How a task was decided, by whom, when, and the comment. `isOwn` says that this person just did. */
async function outcome(task, isOwn) {
  if (task.status === "pending") return null;
  const date = parseTime(task.decisionMade);
  return element("section", { class: `outcome ${task.status}`, id: "outcome", tabindex: -1, "aria-label": t("decision") },
    element("p", {}, element("strong", {}, verdict(task, isOwn))),
    task.decidedVia?.override ? element("p", {}, t("overridden")) : null,
    date ? element("p", { class: "soft" }, timeFromNow(date), " · ", zonedTime(date)) : null,
    task.comment ? await formatted(task.comment, { class: "comment" }) : null);
}

function heading(title, isChanged) {
  const isLong = title.length > LONG_TITLE;
  const classes = [isLong ? "long folded" : "", isChanged ? "changed" : ""];
  const text = element("h1", { dir: "auto", tabindex: -1, class: classes.filter(Boolean).join(" ") || null }, title);
  if (!isLong) return text;
  const unfold = () => {
    text.classList.remove("folded");
    text.focus();
    more.remove();
  };
  const more = element("button", { type: "button", class: "link", onclick: unfold }, t("showAll"));
  // Whether something is hidden depends on the width of the screen.
  if (globalThis.ResizeObserver) new ResizeObserver(() => { more.hidden = text.scrollHeight <= text.clientHeight; }).observe(text);
  return [text, more];
}

/** Marks the paragraphs of a description that an earlier one does not have. */
function markNews(description, earlier) {
  const known = new Set([...earlier.children].map((one) => one.textContent));
  for (const part of description.children) if (!known.has(part.textContent)) part.classList.add("changed");
}

/**
 * What compares two versions of a task: it returns the names of the fields that differ, and an element with what is new, if there
 * is something. Without its module, that is the whole task.
 */
export const comparison = () => import("./changes.js").then(({ changedFields, changeList }) => (before, after) => {
  const fields = changedFields(before, after);
  return { fields, list: fields.length > 0 ? changeList(before, after) : null };
}, () => (_, after) => ({
  fields: [], list: element("div", {}, element("p", { dir: "auto" }, after.title), facts(after, []),
    element("p", { class: "plain-text", dir: "auto" }, after.description)),
}));

/**
 * What a task says. `isOwn`: this person just decided it. `changed`: the fields that differ from what was shown before, which are
 * marked, as are the paragraphs that the `earlier` element of the description does not have.
 */
export async function taskText(task, { isOwn = false, changed = [], earlier = null } = {}) {
  const description = task.description.trim() ? await formatted(task.description, { id: "description" }) : null;
  if (description && earlier && changed.includes("description")) markNews(description, earlier);
  return element("div", { id: "task-text" },
    task.status === "pending" ? element("p", { class: "kicker" }, statusBadge(task.status)) : null,
    await outcome(task, isOwn),
    heading(task.title, changed.includes("title")),
    facts(task, changed),
    description);
}
