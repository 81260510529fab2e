// The parameters of links in mails.

import { $ } from "./dom.js";
import { forgetSecret, rememberSecret, secretOf } from "./session.js";

/** A parameter of the URL, from its fragment or its query. */
function urlParameter(...names) {
  const parts = [location.hash.slice(1), location.search].map((part) => new URLSearchParams(part));
  return names.flatMap((name) => parts.map((part) => part.get(name))).find(Boolean) ?? null;
}

/** Reloads the page when another link is opened in its tab: a new fragment alone does not. */
export function reloadOnNewLink() {
  addEventListener("hashchange", () => location.reload());
}

/** The task's id, its secret, and the decision that the link proposes. Any of them may be missing. */
export function taskLink() {
  const id = urlParameter("taskId", "id");
  const action = urlParameter("action");
  const link = { id, secret: urlParameter("secret"), action: ["approve", "reject"].includes(action) ? action : null };
  if (link.secret) rememberSecret(id ?? "", link.secret);
  else link.secret = secretOf(id ?? "");
  showAddress(link);
  reloadOnNewLink();
  return link;
}

/** Names the task of a link whose secret alone was known. */
export function identify(link, id) {
  rememberSecret(id, link.secret);
  forgetSecret("");
  link.id = id;
  showAddress(link);
}

/** Keeps the secret out of the history and of screenshots of the address bar. It survives a reload in the session. */
function showAddress({ id, action }) {
  const shown = new URLSearchParams();
  if (id) shown.set("taskId", id);
  if (action) shown.set("action", action);
  history.replaceState(null, "", id ? `${location.pathname}?${shown}` : location.pathname);
}

/** The field for a code. If the link has a code, the field is filled in and hidden. */
export function codeFromLink() {
  const field = $("code");
  const code = urlParameter("code");
  if (code) {
    field.value = code;
    field.closest(".field").hidden = true;
    // Keeps the code out of the history and of screenshots of the address bar.
    history.replaceState(null, "", location.pathname);
  }
  reloadOnNewLink();
  return field;
}
