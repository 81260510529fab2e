// The dialogs with which a task is created, edited, handed over, or withdrawn.

import { closeDialog, element, labelled, markErrors, markInvalid, notify, openDialog, remark, SECOND_PRESS, sendByKeyboard, unmark, withButtonsDisabled } from "./dom.js";
import { signInAgain } from "./frame.js";
import { isUncertain } from "./http.js";
import { claims, draftOf, dropDraft, keepDraft, rememberApproverLink } from "./session.js";
import { linkPanel } from "./share.js";
import { cancelPreview, cancelTask, createTask, editTask, loadTask } from "./task-api.js";
import { comparison } from "./task-view.js";
import { t } from "./texts.js";
import { fromLocalInput, isDouble, isOver, parseTime, timeZone, toApi, toLocalInput, zonedText } from "./times.js";

/** The dates that a field takes: the service knows four digits of a year. */
const EARLIEST = "0001-01-01T00:00";
const LATEST = "9999-12-31T23:59:59";

function check(id, label, checked) {
  return element("label", { class: "check" }, element("input", { id, type: "checkbox", checked }), label);
}

/** Without a step of a second, a field refuses a time that has seconds. */
const stepOf = (time) => (time.length > 16 ? 1 : null);

/** The due date of a task in a field. The latest one of the service is later than any that a field takes east of UTC. */
function dueOf(task) {
  const due = parseTime(task.decisionBy);
  return toLocalInput(due && new Date(Math.min(due, new Date(LATEST))));
}

/** What the fields hold for a task, by their ids. */
const valuesOf = (task) => ({
  title: task.title ?? "", approver: task.approver ?? "", "description-field": task.description ?? "",
  decisionBy: dueOf(task), requester: task.requester ?? "",
  commentRequired: task.commentRequired ?? false, confirmationRequired: task.confirmationRequired ?? false, public: task.public ?? false,
});

function fieldsOf(task) {
  const input = (id, attributes) => element("input", { id, dir: "auto", ...attributes });
  const email = (id) => input(id, { type: "email", required: true, autocomplete: "off", value: task[id] });
  const description = element("textarea", { id: "description-field", rows: 5, dir: "auto" }, task.description ?? "");
  const due = dueOf(task);
  return [
    labelled(t("title"), input("title", { required: true, value: task.title })),
    labelled(t("approverField"), email("approver")),
    labelled(t("description"), description, t("markdownHelp")),
    labelled(t("due"), element("input", {
      id: "decisionBy", type: "datetime-local", min: EARLIEST, max: LATEST, value: due, step: stepOf(due),
    }), t("zoneHelp", { zone: timeZone() })),
    labelled(t("requesterField"), email("requester")),
    check("commentRequired", t("commentRequired"), task.commentRequired),
    check("confirmationRequired", t("confirmationRequired"), task.confirmationRequired),
    check("public", t("public"), task.public),
  ];
}

/** What the person has written, by the ids of the fields. */
function writtenIn(form) {
  const fields = [...form.querySelectorAll("input, textarea")];
  return Object.fromEntries(fields.map((field) => [field.id, field.type === "checkbox" ? field.checked : field.value]));
}

function write(form, values) {
  for (const [id, value] of Object.entries(values)) {
    const field = form.querySelector(`#${CSS.escape(id)}`);
    if (field?.type === "checkbox") field.checked = value;
    else if (field) field.value = value;
    if (id === "decisionBy" && stepOf(value)) field?.setAttribute("step", stepOf(value));
  }
}

/** The fields whose values differ, by their ids. */
const differing = (values, others) => Object.fromEntries(Object.entries(values).filter(([id, value]) => value !== others[id]));

/** Fields as the API has them. */
function bodyOf(written) {
  const body = {};
  for (const [id, value] of Object.entries(written)) {
    if (id === "decisionBy") body.decisionBy = toApi(fromLocalInput(value));
    else if (id === "description-field") body.description = value;
    else body[id] = typeof value === "string" ? value.trim() : value;
  }
  return body;
}

/** Says what may be wrong with a date or an address, which is sent all the same. Returns whether there is something. */
function remarks(form, changes) {
  let found = false;
  const say = (id, text) => {
    const field = form.querySelector(`#${id}`);
    if (!field) return;
    remark(field, text);
    found ||= Boolean(text);
  };
  const date = fromLocalInput(changes.decisionBy);
  const isSkipped = date && !toLocalInput(date).startsWith(changes.decisionBy.slice(0, 16));
  const time = zonedText(date);
  say("decisionBy", !date ? "" : isOver(date) ? t("inThePast") : isSkipped ? t("skippedTime", { time })
    : isDouble(date) ? t("doubleTime", { time }) : "");
  for (const id of ["approver", "requester"]) {
    const domain = (changes[id] ?? "").split("@")[1];
    say(id, domain && !domain.includes(".") ? t("domainWithoutDot", { domain }) : "");
  }
  form.querySelector(".remark")?.scrollIntoView({ block: "center" });
  return found;
}

/** Whether a task is as it was written. */
const isAsWritten = (task, written) => Object.keys(differing(bodyOf(written), bodyOf(valuesOf(task)))).length === 0;

/**
 * A dialog with a form. `send(changes, base)` gets what differs from the task, and returns what is shown instead of the form
 * afterwards, or nothing: then it closes. Where the service refuses to make a change twice, `edited` is called if the task shows,
 * as `isDone` says, that an earlier request without a response made it. What is written is kept until it is sent, however the
 * dialog is closed.
 */
function openForm({ title, name, task, fields, action, send, edited, isDone = isAsWritten }) {
  let base = { task, values: {} };
  let remarked = {};
  let mayHaveArrived = false;
  const changes = () => differing(writtenIn(form), base.values);
  const close = () => closeDialog(dialog);
  const submit = (event) => {
    event.preventDefault();
    unmark(form);
    failure.textContent = "";
    const written = changes();
    // A second press sends what was remarked on.
    const now = { key: JSON.stringify(written), at: performance.now() };
    const isSeen = remarked.key === now.key && now.at - remarked.at > SECOND_PRESS;
    if (remarks(form, written) && !isSeen) {
      remarked = now;
      main.textContent = t("sendAnyway", { action });
      return;
    }
    withButtonsDisabled(form, () => trySend(written));
  };
  async function trySend(written) {
    try {
      const result = await send(bodyOf(written), base.task);
      dropDraft(name);
      if (!result) return close();
      dialog.replaceChildren(result, element("div", { class: "actions" }, element("button", { type: "button", onclick: close }, t("done"))));
      result.querySelector("button").focus();
    } catch (error) {
      await failed(error, written);
    }
  }
  async function failed(error, written) {
    const say = (text) => { failure.textContent = text; };
    if (edited && mayHaveArrived && await hasArrived(written)) return close();
    mayHaveArrived ||= isUncertain(error);
    // The service names no field. Only who may edit the task has this form, so it is the person that they may not name.
    const person = error.code === "forbidden" && ["approver", "requester"].find((id) => written[id]);
    if (error.status === 401) await signInAgain(say);
    else if (error.code === "task-changed") await showChange(written).catch(({ message }) => say(message));
    else if (person) markInvalid(form.querySelector(`#${person}`), t("notThisPerson"));
    else if (!markErrors(form, error, { description: "description-field" })) say(error.message);
  }
  async function hasArrived(written) {
    // Who named another approver may not see it any more.
    const isGone = ({ status }) => status === 404 && written.approver;
    const newer = await loadTask(task.id).catch((error) => (isGone(error) ? { ...base.task, ...bodyOf(written) } : null));
    if (!newer || !isDone(newer, written)) return false;
    dropDraft(name);
    const own = Object.keys(bodyOf(written)).map((field) => [field, newer[field]]);
    edited({ ...base.task, ...Object.fromEntries(own) });
    return true;
  }
  /** Another person changed the task: shows how, and takes their values where this person has none. */
  async function showChange(written) {
    const [newer, compare] = await Promise.all([loadTask(task.id), comparison()]);
    change.replaceChildren(element("p", {}, element("strong", {}, t("changedMeanwhile"))), compare(base.task, newer).list ?? "");
    change.hidden = false;
    write(form, valuesOf(newer));
    base = { task: newer, values: writtenIn(form) };
    write(form, written);
    change.scrollIntoView({ block: "nearest" });
  }
  const main = element("button", {}, action);
  const failure = element("p", { class: "error", role: "alert" });
  const change = element("div", { class: "change", role: "alert", hidden: true });
  const restored = element("p", { class: "soft small", hidden: true }, t("restored"), " ");
  const form = element("form", { onsubmit: submit }, element("h2", { id: "dialog-title" }, title), restored, ...fields, change, failure,
    element("div", { class: "actions" }, main, element("button", { type: "button", class: "plain", onclick: close }, t("cancel"))));
  const dialog = element("dialog", { "aria-labelledby": "dialog-title" }, form);
  const discard = () => {
    dropDraft(name);
    // The same text is another task from now on.
    dropDraft(`sent-${name}`);
    write(form, base.values);
    restored.hidden = true;
    form.querySelector("input, textarea").focus();
  };
  restored.append(element("button", { type: "button", class: "link", onclick: discard }, t("discard")));
  // As the fields show it, which may write a line break in another way.
  base.values = writtenIn(form);
  const draft = draftOf(name);
  if (draft) {
    write(form, draft);
    restored.hidden = false;
  }
  form.addEventListener("input", () => {
    main.textContent = action;
    const written = changes();
    if (Object.keys(written).length > 0) keepDraft(name, written);
    else dropDraft(name);
  });
  sendByKeyboard(form);
  openDialog(dialog);
}

/** Keeps the secret of the approver's link for this tab. Returns the panel with the link. */
function linkOf(task) {
  rememberApproverLink(task);
  return linkPanel(task);
}

/** Asks for a new task. `created` is called after it was created. */
export function createDialog(created) {
  const requester = claims().email ?? "";
  openForm({
    title: t("newTask"), name: "new-task", task: { requester }, fields: fieldsOf({ requester }), action: t("create"),
    async send(changes) {
      const task = await createTask({ requester, ...changes });
      created();
      return linkOf(task);
    },
  });
}

/** Changes a task. `edited` is called with the changed task afterwards. */
export function editDialog(task, edited) {
  openForm({
    title: t("edit"), name: `edit-${task.id}`, task, fields: fieldsOf(task), action: t("save"), edited,
    async send(changes, base) {
      if (Object.keys(changes).length === 0) return null;
      const changed = await editTask(base, changes);
      edited(changed);
      return changed.approverSecret ? linkOf(changed) : null;
    },
  });
}

/** Lets an approver name another one. */
export function handOverDialog(task, edited) {
  const approver = element("input", { id: "approver", type: "email", required: true, autocomplete: "off" });
  openForm({
    title: t("handOver"), name: `hand-over-${task.id}`, task, action: t("handOver"), edited,
    fields: [labelled(t("approverField"), approver, t("handOverHelp"))],
    async send(changes, base) {
      const changed = await editTask(base, { approver: approver.value.trim() });
      notify("");
      edited(changed);
    },
  });
}

/** Makes a new link for the approver, because a link is known only to the tab in which it was made. */
export function newLinkDialog(task, edited) {
  openForm({
    title: t("newApproverLink"), name: `link-${task.id}`, task, action: t("newApproverLink"),
    fields: [element("p", {}, t("newApproverLinkHelp"))],
    async send(changes, base) {
      const changed = await editTask(base, { renewApproverSecret: true });
      edited(changed);
      return linkOf(changed);
    },
  });
}

/** Withdraws a task, with a reason. It says before how many webhooks are not called. */
export async function withdrawDialog(task, edited) {
  let preview;
  try {
    preview = await cancelPreview(task.id);
  } catch (error) {
    if (error.status === 401) await signInAgain();
    else notify(error.message, "bad");
    return;
  }
  // A second press was made before the dialog was there.
  if (document.querySelector("dialog")) return;
  const count = preview.webhooksNotTold;
  const reason = element("textarea", { id: "reason", rows: 2, dir: "auto" });
  const withdrawn = (own) => edited({ ...own, status: "cancelled" });
  openForm({
    title: t("withdrawTitle"), name: `withdraw-${task.id}`, task, action: t("withdrawNow"), edited: withdrawn,
    isDone: ({ status, comment }) => status === "cancelled" && (comment ?? "") === reason.value.trim(),
    fields: [
      element("p", {}, t("withdrawHelp")),
      count > 0 ? element("p", { id: "not-told" }, element("strong", {}, t("withdrawNotTold", { count }))) : null,
      labelled(t("withdrawReason"), reason),
    ],
    async send(changes, base) {
      const cancelled = await cancelTask(base, reason.value.trim());
      notify("");
      withdrawn(cancelled);
    },
  });
}

/** Shows the approver's link again. */
export function linkDialog(task, approverSecret) {
  const close = () => closeDialog(dialog);
  const dialog = element("dialog", { "aria-labelledby": "dialog-title" }, linkPanel({ ...task, approverSecret }),
    element("div", { class: "actions" }, element("button", { type: "button", onclick: close }, t("done"))));
  openDialog(dialog);
}
