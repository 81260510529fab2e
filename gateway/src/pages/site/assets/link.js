// The parameters of links in messages. Mail programs damage links, and people copy too much or too little of them, so they
// are read with care: `&amp;` for `&`, encoded signs, quoted-printable, blanks and breaks, capitals, and what follows a link.

import { $ } from "./dom.js";
import { forgetSecret, keepsSecret, rememberSecret, secretOf } from "./session.js";

const ID_LENGTH = 24;
const SECRET_LENGTH = 64;

function decoded(text) {
  try {
    return decodeURIComponent(text);
  } catch {
    return text.replace(/%[\da-f]{2}/gi, (code) => String.fromCharCode(Number.parseInt(code.slice(1), 16)));
  }
}

/** The text of the address from its first parameter on, without what damaged it. Some programs encode it more than once. */
function repaired(address) {
  let text = address;
  for (let step = 0; step < 3; step += 1) text = decoded(text);
  return text.replace(/&(?:amp|#38|#x26);?/gi, "&").replace(/&(?:amp|#38|#x26);?/gi, "&")
    // A soft line break of quoted-printable, and every other blank.
    .replace(/=\r?\n/g, "").replace(/[\s+\u200b\u00ad]/g, "");
}

/** The parameters of an address by their names in lower case. The first one that has a value counts. */
function parametersOf(address) {
  const found = {};
  for (const part of repaired(address).split(/[?&#;]/).slice(1)) {
    const [, name, value] = part.match(/^(\w+)=(.*)$/s) ?? [];
    if (name) found[name.toLowerCase()] ||= value;
  }
  return found;
}

/** The hexadecimal digits with which a value begins, at most as many as it has. */
function digitsOf(value, length) {
  const [digits] = value.replace(/=/g, "").match(/^[\da-f]*/i);
  // `=3D` is how quoted-printable writes `=`.
  const isQuoted = digits.length >= length + 2 && /^3d/i.test(digits);
  return (isQuoted ? digits.slice(2) : digits).toLowerCase().slice(0, length);
}

/**
 * What an address names: the task, its secret, and the decision that it proposes. Any of them may be missing; `isHalf` says that
 * the link was cut off.
 */
export function readLink(address) {
  const given = parametersOf(address);
  const namedId = given.taskid ?? given.id;
  const id = digitsOf(namedId ?? "", ID_LENGTH);
  const secret = digitsOf(given.secret ?? "", SECRET_LENGTH);
  const [, action] = (given.action ?? "").match(/^(?:3d)?(approve|reject)/i) ?? [];
  const isHalf = (namedId !== undefined && id.length < ID_LENGTH) || (given.secret !== undefined && secret.length < SECRET_LENGTH);
  return {
    id: id.length === ID_LENGTH ? id : null, secret: secret.length === SECRET_LENGTH ? secret : null,
    action: action?.toLowerCase() ?? null, isHalf,
  };
}

/** Reloads the page when another link is opened in its tab: a new fragment alone does not. */
export function reloadOnNewLink() {
  addEventListener("hashchange", () => { if (location.hash.includes("=")) location.reload(); });
}

/** The link that opened the page. Its secret is also known from an earlier visit in the same tab. */
export function taskLink() {
  const link = readLink(location.pathname + location.search + location.hash);
  if (link.secret) rememberSecret(link.id ?? "", link.secret);
  else if (!link.isHalf) link.secret = secretOf(link.id ?? "");
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

/** Goes on without the link's secret. */
export function withoutSecret(link) {
  forgetSecret(link.id ?? "");
  link.secret = null;
  showAddress(link);
}

/**
 * Keeps the secret out of the history and of screenshots of the address bar. It survives a reload in the session; in a browser
 * that stores nothing, only the address can keep it.
 */
function showAddress({ id, secret, action }) {
  const shown = new URLSearchParams();
  if (id) shown.set("taskId", id);
  if (action) shown.set("action", action);
  const fragment = secret && !keepsSecret(id ?? "") ? `#secret=${secret}` : "";
  try {
    history.replaceState(null, "", `/tasks${id ? `?${shown}` : ""}${fragment}`);
  } catch {
    // Some browsers limit how often. The address then stays as it is.
  }
}

/** The field for a code. If the link has a code, the field is filled in and hidden. */
export function codeFromLink() {
  const field = $("code");
  const code = digitsOf(parametersOf(location.search + location.hash).code ?? "", SECRET_LENGTH);
  if (code) {
    field.value = code;
    field.closest(".field").hidden = true;
    // Keeps the code out of the history and of screenshots of the address bar.
    history.replaceState(null, "", location.pathname);
  }
  reloadOnNewLink();
  return field;
}
