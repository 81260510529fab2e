// Elements, notices and forms.

import { t } from "./texts.js";

/** A second press that comes sooner belongs to the first one: people double-click, and fingers tremble. */
export const SECOND_PRESS = 600;

/** Ignores presses in a part of the page that was just shown: the second one was meant for what was there before. */
export function ignoreSecondPress(part) {
  part.dataset.new = "";
  setTimeout(() => { delete part.dataset.new; }, SECOND_PRESS);
}

addEventListener("click", (event) => {
  if (!event.target.closest("[data-new]")) return;
  event.preventDefault();
  event.stopPropagation();
}, true);

// Chromium lets `cancel` be prevented once. What is being sent cannot be cancelled, and how that goes is said in the dialog.
addEventListener("keydown", (event) => {
  if (event.key === "Escape" && document.querySelector("dialog [aria-busy]")) event.preventDefault();
});

export const $ = (id) => document.getElementById(id);

/** An element with attributes and children. Strings become text nodes, never markup. */
export function element(name, attributes = {}, ...children) {
  const created = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) {
    if (key.startsWith("on")) created.addEventListener(key.slice(2), value);
    else if (value === true) created.setAttribute(key, "");
    else if (value !== false && value !== undefined && value !== null) created.setAttribute(key, value);
  }
  created.append(...children.flat(Infinity).filter((child) => child !== null && child !== undefined));
  return created;
}

/** Text that a caller of the API chose: its direction does not affect the text around it. */
export function foreign(text) {
  return element("bdi", {}, text);
}

/**
 * Shows a text in the page's notice. `kind` is `good`, `bad` or empty. Both regions are always there, because what appears
 * together with its region is not read aloud.
 */
export function notify(text, kind = "") {
  const parts = [text].flat(Infinity);
  for (const id of ["state", "alert"]) {
    const isShown = text !== "" && (id === "alert") === (kind === "bad");
    $(id).replaceChildren(...(isShown ? [element("p", { class: `notice ${kind}` }, parts)] : []));
  }
  if (kind) $(kind === "bad" ? "alert" : "state").scrollIntoView({ block: "nearest" });
}

/** Whether the page shows the notice of this failure: what fails again in the background says so once. */
export const isSaid = ({ message }) => $("alert").textContent === message;

/** Removes a notice of a failure. */
export function forgetFailure() {
  $("alert").replaceChildren();
}

/** Adds an id to those that describe a field, or removes it. */
function describe(field, id, isDescribed) {
  const others = (field.getAttribute("aria-describedby") ?? "").split(" ").filter((part) => part && part !== id);
  const ids = isDescribed ? [...others, id] : others;
  if (ids.length > 0) field.setAttribute("aria-describedby", ids.join(" "));
  else field.removeAttribute("aria-describedby");
}

/** A label with its field, and a line of help below it. The field gets the id and the help's id. */
export function labelled(label, field, help) {
  const helpId = `${field.id}-help`;
  if (help) describe(field, helpId, true);
  return element("div", { class: "field" }, element("label", { for: field.id }, label), field,
    help ? element("p", { class: "soft small", id: helpId }, help) : null);
}

/** Shows a remark below a field, which may still be sent. An empty text removes it. */
export function remark(field, text) {
  const id = `${field.id}-remark`;
  $(id)?.remove();
  if (text) field.after(element("p", { class: "remark small", id, role: "alert" }, text));
  describe(field, id, Boolean(text));
}

/** Marks a field, or a fieldset, as invalid, says why below it, and moves the focus there. An empty text removes the mark. */
export function markInvalid(field, text) {
  const id = `${field.id}-error`;
  $(id)?.remove();
  describe(field, id, Boolean(text));
  if (!text) return field.removeAttribute("aria-invalid");
  const first = field.querySelector("input");
  field[first ? "append" : "after"](element("p", { class: "error small", id, role: "alert" }, text));
  field.setAttribute("aria-invalid", "true");
  (first ?? field).focus();
  // Buttons that stay at the bottom must not cover it.
  field.scrollIntoView({ block: "center" });
}

/** Removes the marks of all fields of a form. */
export function unmark(form) {
  for (const field of form.querySelectorAll("[aria-invalid]")) markInvalid(field, "");
}

/**
 * Marks the fields of a form that a failed call names; the first one has the focus. `names` has the ids of fields whose
 * ids differ from the API's names. Returns whether there is one.
 */
export function markErrors(form, error, names = {}) {
  const fields = error.fields.map(({ field, text }) => [names[field] ?? field.split(/[.[]/)[0], text]);
  const found = fields.map(([id, text]) => [form.querySelector(`#${CSS.escape(id)}`), text]).filter(([field]) => field);
  for (const [field, text] of found.reverse()) markInvalid(field, text);
  return found.length > 0;
}

/** Runs `work` while the buttons of `form` are disabled, so that nothing is sent twice. */
export async function withButtonsDisabled(form, work) {
  const buttons = [...form.querySelectorAll("button")];
  const focused = document.activeElement;
  for (const button of buttons) button.disabled = true;
  form.setAttribute("aria-busy", "true");
  try {
    await work();
  } finally {
    for (const button of buttons) button.disabled = false;
    form.removeAttribute("aria-busy");
    // A disabled button loses the focus, and a person who uses the keyboard their place. A notice stays in view.
    if (document.activeElement === document.body && focused?.isConnected) focused.focus({ preventScroll: true });
  }
}

/**
 * Ctrl+Enter (or ⌘+Enter) in a field sends its form. A key that is held repeats itself: that is one press, as it is of a button.
 */
export function sendByKeyboard(form, send = () => form.querySelector("button:not([type])").click()) {
  form.addEventListener("keydown", (event) => {
    const isSending = event.ctrlKey || event.metaKey;
    if (event.key !== "Enter" || (!isSending && event.target.matches("textarea"))) return;
    if (event.repeat) return event.preventDefault();
    if (!isSending || !event.target.matches("input, textarea")) return;
    event.preventDefault();
    if (!form.hasAttribute("aria-busy")) send();
  });
}

/** Moves the focus that an element had which is gone to the heading of what took its place. */
export function focusHeading() {
  const heading = document.querySelector("#content h1");
  if (!heading || document.activeElement !== document.body) return;
  heading.tabIndex = -1;
  heading.focus({ preventScroll: true });
}

/** Moves the focus to what took the place of an element that had it. */
function focusInPlaceOf({ id, tagName, textContent }) {
  const alike = [...document.querySelectorAll(tagName)].find((one) => one.textContent === textContent);
  const target = $(id) ?? alike;
  if (target) target.focus({ preventScroll: true });
  else focusHeading();
}

/** Runs `work`, which replaces elements. The focus stays, or goes to what took the place of the element that had it. */
export function keepingFocus(work) {
  const focused = document.activeElement;
  work();
  if (focused && focused !== document.body && document.activeElement !== focused) focusInPlaceOf(focused);
}

/** Says that a part of the page did not arrive. Returns what stands for its module. */
export function notLoaded() {
  const reload = element("button", { type: "button", class: "link", onclick: () => location.reload() }, t("tryAgain"));
  notify([t("noConnection"), " ", reload], "bad");
  return {};
}

/** Opens a dialog, in a browser without them as a part of the page. It is removed when it is closed. */
export function openDialog(dialog) {
  const opener = document.activeElement;
  ignoreSecondPress(dialog);
  dialog.addEventListener("close", () => {
    dialog.remove();
    // The page may have been rendered again meanwhile.
    if (opener && !opener.isConnected && document.activeElement === document.body) focusInPlaceOf(opener);
  });
  // By the gesture of a phone.
  dialog.addEventListener("cancel", (event) => { if (dialog.querySelector("[aria-busy]")) event.preventDefault(); });
  const first = dialog.querySelector("[autofocus], input");
  // Only a real dialog takes the focus for it.
  if (!dialog.showModal) first?.removeAttribute("autofocus");
  document.body.append(dialog);
  if (dialog.showModal) return dialog.showModal();
  dialog.setAttribute("open", "");
  first?.focus();
}

/** Closes a dialog. */
export function closeDialog(dialog, value) {
  if (dialog.close) return dialog.close(value);
  dialog.returnValue = value;
  dialog.dispatchEvent(new Event("close"));
}
