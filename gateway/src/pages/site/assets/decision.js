// The form with which a person decides: one press, whatever the connection does.

import { $, element, labelled, markInvalid, notify } from "./dom.js";
import { withRetries } from "./retry.js";
import { loadTask, sendDecision } from "./task-api.js";
import { t } from "./texts.js";

const MAX_COMMENT = 2_000;
const OUTCOMES = { approve: "approved", reject: "rejected" };
const otherVerb = { approve: "reject", reject: "approve" };

/** The form of a pending task. `decided(task, wasFirst)` is called with the task after a decision. */
export function decisionForm(task, proposed, { decided, failed }) {
  const comment = element("textarea", { id: "comment", maxlength: MAX_COMMENT, rows: 2, dir: "auto" });
  const press = (verb) => () => submit(form, task, verb, comment, { decided, failed });
  const button = (verb) => element("button", {
    type: "button", id: verb, onclick: press(verb),
    class: proposed === otherVerb[verb] ? "plain" : `${verb} ${proposed === verb ? "chosen" : ""}`,
  }, t(verb));
  const form = element("form", { class: "decision", onsubmit: (event) => event.preventDefault() },
    labelled(t(task.commentRequired ? "commentIfRejected" : "commentOptional"), comment),
    proposed ? element("p", { class: "soft", id: "proposal" }, t(`proposed ${proposed}`)) : null,
    element("div", { class: "actions sticky" }, button("approve"), button("reject")));
  comment.addEventListener("input", () => markInvalid(comment, ""));
  return form;
}

async function submit(form, task, verb, comment, { decided, failed }) {
  const text = comment.value.trim();
  if (verb === "reject" && task.commentRequired && !text) {
    markInvalid(comment, t("commentMissing"));
    return;
  }
  const stop = showProgress(form, verb);
  try {
    const { first } = await decide(task.id, verb, text);
    decided(await loadTask(task.id).catch(() => ({ ...task, status: OUTCOMES[verb] })), first);
  } catch (error) {
    stop();
    if (error.code === "task-already-resolved") {
      const status = error.problem.taskStatus ?? task.status;
      decided(await loadTask(task.id).catch(() => ({ ...task, status })), false);
    } else if (isAbout(error, "comment")) {
      markInvalid(comment, error.problem.errors[0].code === "required" ? t("commentMissing") : error.message);
    } else {
      failed(error);
    }
  }
}

const isAbout = (error, field) => (error.problem?.errors ?? []).some((one) => one.field === field);

/** Shows at once that the press counts. Returns what restores the form. */
function showProgress(form, verb) {
  const buttons = [...form.querySelectorAll("button")];
  for (const button of buttons) button.disabled = true;
  const pressed = $(verb);
  pressed.classList.add("busy");
  pressed.textContent = t(`busy ${verb}`);
  $("comment").readOnly = true;
  form.setAttribute("aria-busy", "true");
  notify(t(`busy ${verb}`));
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
 * Sends a decision until there is a response. An earlier request may have arrived although its response was lost, so
 * “already decided” with the same outcome is then a success.
 */
async function decide(id, verb, comment) {
  let mayHaveArrived = false;
  return withRetries(async () => {
    try {
      await sendDecision(id, verb, comment);
      return { first: true };
    } catch (error) {
      if (mayHaveArrived && error.code === "task-already-resolved" && error.problem.taskStatus === OUTCOMES[verb]) {
        return { first: true };
      }
      mayHaveArrived ||= error.temporary;
      throw error;
    }
  }, (error) => notify(t(error.status ? "serverBusy" : "tryingAgain"), "bad"));
}
