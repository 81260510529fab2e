// The form with which a person decides: one press, whatever the connection does. The press counts for what the person saw: after
// a change, the form asks again.

import { $, element, foreign, labelled, markInvalid, notify, SECOND_PRESS, sendByKeyboard } from "./dom.js";
import { isUncertain, unreachable } from "./http.js";
import { withRetries } from "./retry.js";
import { draftOf, dropDraft, keepDraft } from "./session.js";
import { loadTask, sendDecision } from "./task-api.js";
import { isInPlace } from "./task-view.js";
import { t, tWith } from "./texts.js";

/** How long a change must have been in view. */
const READING = 1_200;
/** How much of what is in view the next part of a change takes. */
const PART = 0.8;
const OUTCOMES = { approve: "approved", reject: "rejected" };
const otherVerb = { approve: "reject", reject: "approve" };

/**
 * The form of a pending task. `decided(task, wasFirst)` is called with the task after a decision, `changed(task)` if it is another
 * one than the person saw, and `failed(error, button)` after a failure. Returns the form, `update(task, changes)` for a task
 * that has changed: `changes` is what the person must read first, or nothing; and `takesPlace()`, to be called when the form takes
 * the place of another button.
 */
export function decisionForm(task, proposed, handlers) {
  const draft = draftOf(`comment-${task.id}`);
  // The press that opened the page was at 0.
  const state = { task, verb: proposed, asked: null, sent: [], since: 0, handlers };
  const comment = element("textarea", { id: "comment", rows: 2, dir: "auto" });
  comment.value = draft?.text ?? "";
  const button = (verb) => element("button", {
    type: "button", id: verb, onclick: () => submit(form, state, verb),
    class: proposed === otherVerb[verb] ? "plain" : `${verb} ${proposed === verb ? "chosen" : ""}`,
  }, t(verb));
  const open = () => {
    showComment(form);
    comment.focus();
  };
  const form = element("form", { class: "decision", onsubmit: (event) => event.preventDefault() },
    element("div", { class: "change", id: "change", tabindex: 0, role: "group", "aria-label": t("changes"), hidden: true }),
    element("p", { class: "soft", id: "in-place" }),
    element("div", { id: "comment-area", hidden: true }, labelled("", comment)),
    proposed ? element("p", { class: "soft", id: "proposal" }, t(`proposed ${proposed}`)) : null,
    element("p", { id: "ask-again", role: "alert" }),
    element("button", { type: "button", class: "link", id: "add-comment", onclick: open }, t("addComment")),
    element("div", { class: "actions", id: "decide" },
      element("p", { class: "more", id: "more", hidden: true }, t("moreBelow")), button("approve"), button("reject")),
    element("div", { class: "actions", id: "read", hidden: true }));
  comment.addEventListener("input", () => {
    markInvalid(comment, "");
    keepDraft(`comment-${state.task.id}`, { text: comment.value });
  });
  // Browsers only see to the line that is written in.
  comment.addEventListener("focus", () => comment.scrollIntoView({ block: "nearest" }));
  sendByKeyboard(form, () => {
    // Which button it presses must be clear: the one that the person or the link has chosen, after what is new was read.
    const read = form.querySelector("#read:not([hidden]) button");
    if (read || state.verb) (read ?? $(state.verb)).click();
    else $("approve").focus();
  });
  const update = (newer, changes) => {
    state.task = newer;
    forgetFirstPress(form, state);
    label(form, newer);
    if (changes) askToRead(form, state, changes);
    else forgetChange(form, state);
  };
  label(form, task);
  if (comment.value) showComment(form);
  return { form, update, takesPlace: () => { state.since = performance.now(); } };
}

/** In whose place the person decides, and what the comment is for. It is open where a rejection needs it. */
function label(form, task) {
  const inPlace = form.querySelector("#in-place");
  inPlace.hidden = task.isApprover;
  inPlace.replaceChildren(...tWith("inPlace", { who: foreign(task.approver) }));
  form.querySelector("label").textContent = t(task.commentRequired ? "commentIfRejected" : "commentOptional");
  if (task.commentRequired) showComment(form);
}

function showComment(form) {
  form.querySelector("#comment-area").hidden = false;
  form.querySelector("#add-comment").hidden = true;
}

/** Shows what changed at the buttons, which come back when it was in view to its end. */
function askToRead(form, state, changes) {
  const change = form.querySelector("#change");
  const end = element("p", { class: "end" });
  let timer;
  const wait = (isInView) => {
    clearTimeout(timer);
    // Another change may have taken its place.
    if (isInView) timer = setTimeout(() => { if (end.isConnected && showButtons(form, state, true)) state.handlers.seen(); }, READING);
  };
  // Each press shows the next part: within the change, or on a low screen, where it is a part of the page, of the page.
  const show = () => {
    change.focus({ preventScroll: true });
    const [{ top, bottom }, room] = [change.getBoundingClientRect(), innerHeight - form.querySelector("#read").offsetHeight];
    if (change.scrollHeight > change.clientHeight) change.scrollTop += change.clientHeight * PART;
    else if (bottom < 0 || top > room * PART) change.scrollIntoView();
    else scrollBy(0, Math.max(0, Math.min(bottom - room, room * PART)));
    const isAtEnd = end.getBoundingClientRect().top < Math.min(change.getBoundingClientRect().bottom, room);
    if (!globalThis.IntersectionObserver) wait(isAtEnd);
  };
  change.replaceChildren(element("p", { role: "alert" }, element("strong", {}, t("changed"))), changes, end);
  change.hidden = false;
  change.scrollTop = 0;
  form.querySelector("#read").replaceChildren(element("button", { type: "button", onclick: show }, t("readChange")));
  showButtons(form, state, false);
  if (!globalThis.IntersectionObserver) return;
  // What is behind the button is not in view.
  const rootMargin = `0px 0px ${-form.querySelector("#read").offsetHeight}px`;
  new IntersectionObserver((entries) => wait(entries[entries.length - 1].isIntersecting), { rootMargin }).observe(end);
}

/** Shows the buttons that decide, or the one that leads to the change. The focus stays where it was. Returns whether they changed. */
function showButtons(form, state, isRead) {
  const [decide, read] = ["#decide", "#read"].map((id) => form.querySelector(id));
  if (decide.hidden !== isRead) return false;
  const [from, to] = isRead ? [read, decide] : [decide, read];
  const hadFocus = from.contains(document.activeElement);
  from.hidden = true;
  to.hidden = false;
  state.since = performance.now();
  if (hadFocus) to.querySelector("button").focus();
  return true;
}

/** The task is again as the person read it. */
function forgetChange(form, state) {
  if (!form.querySelector("#decide").hidden) return;
  form.querySelector("#change").hidden = true;
  showButtons(form, state, true);
}

async function submit(form, state, verb) {
  const { task, handlers } = state;
  const now = performance.now();
  // One that comes too soon belongs to the button that was there before.
  if (now - state.since < SECOND_PRESS) return;
  const comment = $("comment");
  const text = comment.value.trim();
  state.verb = verb;
  if (verb === "reject" && task.commentRequired && !text) {
    showComment(form);
    markInvalid(comment, t("commentMissing"));
    return;
  }
  if (task.confirmationRequired && !isSecondPress(form, state, verb, now)) return;
  const stop = showProgress(form, verb);
  try {
    const { decided, first } = await decide(state, verb, text);
    dropDraft(`comment-${task.id}`);
    handlers.decided(decided, first);
  } catch (error) {
    stop();
    forgetFirstPress(form, state);
    if (error.code === "task-changed") await handlers.changed({ ...task, ...error.problem.task });
    else if (error.about("comment")) {
      showComment(form);
      markInvalid(comment, error.about("comment").code === "required" ? t("commentMissing") : error.message);
    } else handlers.failed(error, $(verb));
  }
}

/** Whether a press confirms an earlier one of the same button. If it does not, the form asks for a second press. */
function isSecondPress(form, state, verb, now) {
  const { asked } = state;
  if (asked?.verb !== verb) forgetFirstPress(form, state);
  state.asked = { verb, at: now };
  // One that comes too soon belongs to the one before it.
  if (asked?.verb === verb) return now - asked.at > SECOND_PRESS;
  $(verb).textContent = t(`sure ${verb}`);
  form.querySelector("#ask-again").textContent = t(`askAgain ${verb}`);
  return false;
}

function forgetFirstPress(form, state) {
  state.asked = null;
  for (const verb of Object.keys(OUTCOMES)) form.querySelector(`#${verb}`).textContent = t(verb);
  form.querySelector("#ask-again").textContent = "";
}

/** Shows at once that the press counts. Returns what restores the form. */
function showProgress(form, verb) {
  const buttons = [...form.querySelectorAll("button")];
  for (const button of buttons) button.disabled = true;
  const pressed = $(verb);
  pressed.classList.add("busy");
  pressed.textContent = t(`busy ${verb}`);
  $("comment").readOnly = true;
  form.setAttribute("aria-busy", "true");
  notify("");
  return () => {
    for (const button of buttons) button.disabled = false;
    pressed.classList.remove("busy");
    pressed.textContent = t(verb);
    $("comment").readOnly = false;
    form.removeAttribute("aria-busy");
    notify("");
    pressed.focus();
  };
}

/**
 * Sends a decision until there is a response. Returns the decided task, and whether this person decided it: an earlier request, also
 * one of an earlier press, may have arrived although its response was lost.
 */
async function decide({ task, sent }, verb, comment) {
  return withRetries(async () => {
    try {
      const answer = await sendDecision(task, verb, comment);
      if (answer?.status !== OUTCOMES[verb]) throw unreachable();
    } catch (error) {
      if (error.code === "task-already-resolved") {
        const decided = await loadTask(task.id);
        return { decided, first: sent.some((one) => isResult(decided, one)) };
      }
      if (isUncertain(error)) sent.push({ verb, comment });
      throw error;
    }
    return { decided: await loadTask(task.id).catch(() => ({ ...task, status: OUTCOMES[verb] })), first: true };
  }, (error, isLong) => notify(t(isLong ? "sentWhenOnline" : error.status ? "serverBusy" : "tryingAgain"), "bad"));
}

/** Whether a task was decided as it was sent, and by the approver or in their place as this person would. */
function isResult(task, { verb, comment }) {
  const isByOther = task.decidedBy && Boolean(isInPlace(task)) === task.isApprover;
  return task.status === OUTCOMES[verb] && (task.comment ?? "") === comment && !isByOther;
}
