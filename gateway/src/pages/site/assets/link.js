// The parameters of links in messages. Mail programs damage links, and people copy too much or too little of them, so they
// are read with care: `&amp;` for `&`, encoded signs, quoted-printable, blanks and breaks, capitals, and what follows a link.

import { $, markInvalid } from "./dom.js";
import { forgetSecret, keepsSecret, rememberSecret, secretOf } from "./session.js";
import { t } from "./texts.js";

const ID_LENGTH = 24;
const SECRET_LENGTH = 64;

function decoded(text) {
  try {
    return decodeURIComponent(text);
  } catch {
    return text.replace(/%[\da-f]{2}/gi, (code) => String.fromCharCode(Number.parseInt(code.slice(1), 16)));
  }
}

/** The text of the address without what damaged it. Some programs encode it more than once. */
function repaired(address) {
  let text = address;
  for (let step = 0; step < 3; step += 1) text = decoded(text);
  return text.replace(/&(?:amp|#38|#x26);?/gi, "&").replace(/&(?:amp|#38|#x26);?/gi, "&").replace(/&#(?:61|x3d);?/gi, "=")
    // Where a line may break.
    .replace(/&shy;|<wbr *\/?>/gi, "")
    // A soft line break of quoted-printable, the marks of a quoted message, and every sign that is not seen.
    .replace(/=\r?\n/g, "").replace(/\n[\s>]+/g, "").replace(/[\s+\p{Cf}]/gu, "")
    // Quoted-printable.
    .replace(/=(?:26|3f)(?=(?:taskid|id|version|secret|action|code)=)/gi, "&");
}

/** The parameters of a repaired address by their names in lower case. The first one that has a value counts. */
function parametersOf(text) {
  const found = {};
  for (const part of text.split(/[?&#;]/).slice(1)) {
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
 * What an address names: the task, its version of which a mail told, its secret, and the decision that it proposes. Any of them may
 * be missing, the version is then no number; `isHalf` says that the link was cut off.
 */
export function readLink(address) {
  const text = repaired(address);
  const given = parametersOf(text);
  const namedId = given.taskid ?? given.id;
  const id = digitsOf(namedId ?? "", ID_LENGTH);
  const secret = wholeIn(digitsOf(given.secret ?? "", SECRET_LENGTH)) ?? wholeIn(text);
  const [, version] = (given.version ?? "").match(/^(?:3d)?(\d+)/i) ?? [];
  const [, action] = (given.action ?? "").match(/^(?:3d)?(approve|reject)/i) ?? [];
  return {
    // A secret begins with the identifier of its task.
    id: id.length === ID_LENGTH ? id : secret?.slice(0, ID_LENGTH) ?? null,
    secret, version: Number(version), action: action?.toLowerCase() ?? null,
    isHalf: !secret && (given.secret !== undefined || (namedId !== undefined && id.length < ID_LENGTH)),
  };
}

/** The first whole secret or code in a text, whatever is around it. */
const wholeIn = (text) => text.match(/(?:=3d)?([\da-f]{64})/i)?.[1].toLowerCase() ?? null;

/** Reloads the page when another link is opened in its tab: a new fragment alone does not. */
export function reloadOnNewLink() {
  addEventListener("hashchange", () => { if (location.hash.includes("=")) location.reload(); });
}

/** The link that opened the page. Its secret is also known from an earlier visit in the same tab. */
export function taskLink() {
  const link = readLink(location.pathname + location.search + location.hash);
  if (link.secret) rememberSecret(link.id, link.secret);
  else if (link.id && !link.isHalf) link.secret = secretOf(link.id);
  showAddress(link);
  reloadOnNewLink();
  return link;
}

/** Goes on without the link's secret. */
export function withoutSecret(link) {
  forgetSecret(link.id);
  link.secret = null;
  showAddress(link);
}

/**
 * Keeps the secret out of the history and of screenshots of the address bar. It survives a reload in the session; in a browser
 * that stores nothing, only the address can keep it.
 */
function showAddress({ id, secret, version, action }) {
  const shown = new URLSearchParams();
  if (id) shown.set("taskId", id);
  if (version) shown.set("version", version);
  if (action) shown.set("action", action);
  const fragment = secret && !keepsSecret(id) ? `#secret=${secret}` : "";
  try {
    history.replaceState(null, "", `/tasks${id ? `?${shown}` : ""}${fragment}`);
  } catch {
    // Some browsers limit how often. The address then stays as it is.
  }
}

/** The field for a code. If the link has a code, the field is filled in and hidden. Half a code is shown. */
export function codeFromLink() {
  const field = $("code");
  const text = repaired(location.pathname + location.search + location.hash);
  const half = digitsOf(parametersOf(text).code ?? "", SECRET_LENGTH);
  const code = wholeIn(half) ?? wholeIn(text);
  if (code || half) {
    field.value = code ?? half;
    field.closest(".field").hidden = Boolean(code);
    // Keeps the code out of the history and of screenshots of the address bar.
    history.replaceState(null, "", location.pathname.replace(/[^/a-z-].*$/, ""));
  }
  if (half && !code) markInvalid(field, `${t("halfTitle")}. ${t("halfLink")}`);
  reloadOnNewLink();
  return field;
}
