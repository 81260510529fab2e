// The dialogs with which a task is created, edited, or handed over.

import { $, element, labelled, markInvalid, withButtonsDisabled } from "./dom.js";
import { linkPanel } from "./share.js";
import { createTask, editTask } from "./task-api.js";
import { t } from "./texts.js";
import { fromLocalInput, parseTime, toLocalInput } from "./times.js";

function check(id, label, checked) {
  return element("label", { class: "check" }, element("input", { id, type: "checkbox", checked }), label);
}

function fieldsOf(task) {
  const input = (id, attributes) => element("input", { id, dir: "auto", ...attributes });
  const email = (id) => input(id, { type: "email", required: true, autocomplete: "off", value: task[id] });
  const description = element("textarea", { id: "description-field", rows: 5, maxlength: 20_000, dir: "auto" }, task.description ?? "");
  return [
    labelled(t("title"), input("title", { required: true, maxlength: 500, value: task.title })),
    labelled(t("approver"), email("approver")),
    labelled(t("description"), description, t("markdownHelp")),
    labelled(t("due"), element("input", { id: "decisionBy", type: "datetime-local", value: toLocalInput(parseTime(task.decisionBy)) })),
    labelled(t("requestedBy"), email("requester")),
    check("commentRequired", t("commentRequired"), task.commentRequired),
    check("public", t("public"), task.public),
  ];
}

function valuesOf() {
  return {
    title: $("title").value, approver: $("approver").value.trim(), requester: $("requester").value.trim(),
    description: $("description-field").value, decisionBy: fromLocalInput($("decisionBy").value),
    commentRequired: $("commentRequired").checked, public: $("public").checked,
  };
}

/** Shows what is wrong at the first field that the service names, or above the buttons. */
function showErrors(form, error) {
  for (const field of form.querySelectorAll("[aria-invalid]")) markInvalid(field, "");
  const [first] = error.problem?.errors ?? [];
  const field = first && form.querySelector(`#${first.field === "description" ? "description-field" : first.field}`);
  if (field) markInvalid(field, first.message);
  else form.querySelector("[role=alert]").textContent = error.message;
}

/** A dialog with a form. `send` returns what is shown instead of the form afterwards, or nothing: then it closes. */
function openDialog(title, fields, action, send) {
  const close = element("button", { type: "button", class: "plain", onclick: () => dialog.close() }, t("cancel"));
  const submit = (event) => {
    event.preventDefault();
    withButtonsDisabled(form, async () => {
      try {
        const result = await send();
        if (!result) return dialog.close();
        dialog.replaceChildren(result, element("div", { class: "actions" },
          element("button", { type: "button", onclick: () => dialog.close() }, t("done"))));
        result.querySelector("button").focus();
      } catch (error) {
        showErrors(form, error);
      }
    });
  };
  const form = element("form", { onsubmit: submit }, element("h2", { id: "dialog-title" }, title), ...fields,
    element("p", { class: "error", role: "alert" }), element("div", { class: "actions" }, element("button", {}, action), close));
  const dialog = element("dialog", { "aria-labelledby": "dialog-title", onclose: () => dialog.remove() }, form);
  document.body.append(dialog);
  dialog.showModal();
}

/** Asks for a new task. `created` is called after it was created. */
export function createDialog(requester, created) {
  openDialog(t("newTask"), fieldsOf({ requester }), t("create"), async () => {
    const task = await createTask(valuesOf());
    created();
    return linkPanel(task);
  });
}

/** Changes a task. `edited` is called afterwards. */
export function editDialog(task, edited) {
  openDialog(t("edit"), fieldsOf(task), t("save"), async () => {
    const changed = await editTask(task.id, valuesOf());
    edited();
    return changed.approverSecret ? linkPanel(changed) : null;
  });
}

/** Lets an approver name another one. */
export function handOverDialog(task, edited) {
  const approver = element("input", { id: "approver", type: "email", required: true, autocomplete: "off" });
  openDialog(t("handOver"), [labelled(t("approver"), approver, t("handOverHelp"))], t("handOver"), async () => {
    await editTask(task.id, { approver: approver.value.trim() });
    edited();
  });
}
