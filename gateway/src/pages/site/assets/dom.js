// Elements, notices and forms.

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

/** Shows a text in the page's notice. `kind` is `good`, `bad` or empty. */
export function notify(text, kind = "") {
  const state = $("state");
  state.replaceChildren(...[text].flat(Infinity));
  state.className = `notice ${kind}`;
  state.hidden = text === "";
  if (kind === "bad") state.scrollIntoView({ block: "nearest" });
}

/** A label with its field, and a line of help below it. The field gets the id and the help's id. */
export function labelled(label, field, help) {
  const helpId = `${field.id}-help`;
  if (help) field.setAttribute("aria-describedby", helpId);
  return element("div", { class: "field" }, element("label", { for: field.id }, label), field,
    help ? element("p", { class: "soft small", id: helpId }, help) : null);
}

/** Marks a field as invalid, says why below it, and moves the focus there. An empty text removes the mark. */
export function markInvalid(field, text) {
  const id = `${field.id}-error`;
  $(id)?.remove();
  const described = (field.getAttribute("aria-describedby") ?? "").split(" ").filter((part) => part && part !== id);
  if (text) {
    field.after(element("p", { class: "error small", id, role: "alert" }, text));
    described.push(id);
    field.setAttribute("aria-invalid", "true");
    field.focus();
    // Buttons that stay at the bottom must not cover it.
    field.scrollIntoView({ block: "center" });
  } else {
    field.removeAttribute("aria-invalid");
  }
  field.setAttribute("aria-describedby", described.join(" "));
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
    // A disabled button loses the focus, and a person who uses the keyboard their place.
    if (document.activeElement === document.body && focused?.isConnected) focused.focus();
  }
}
