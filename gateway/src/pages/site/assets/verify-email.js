// Confirms an e-mail address by the code of a link, for a person who also has the account: with the token of this tab or the
// account's password. A person whose address someone else used takes the account over by a new password.

import { call } from "./api.js";
import { $, element, labelled, markErrors, markInvalid, notify, unmark, withButtonsDisabled } from "./dom.js";
import { showFrame } from "./frame.js";
import { codeFromLink } from "./link.js";
import { token } from "./session.js";
import { t } from "./texts.js";

const password = (id, label, kind, help) => labelled(t(label),
  element("input", { id, name: id, type: "password", autocomplete: kind, required: true }), help);

/** Browsers expect it before a password. The page does not know the address. */
const username = () => element("input", { type: "email", autocomplete: "username", hidden: true, readonly: true });

const linkTo = (text, proof) => element("p", { class: "links" },
  element("button", { type: "button", class: "link", onclick: () => show(proof) }, text));

/** What a person gives besides the code: the fields, what the button says, the link to another proof, and what is sent. */
const proofs = {
  token: () => ({ fields: [element("p", {}, t("verifyHere"))], action: "confirm", other: [], options: () => ({ token: token() }) }),
  password: () => ({
    fields: [username(), password("password", "password", "current-password", t("verifyPassword"))], action: "confirm",
    other: [linkTo(t("noPassword"), "newPassword")],
    options: () => ({ body: { password: $("password").value } }),
  }),
  newPassword: () => ({
    fields: [element("p", {}, t("verifyNewPassword")), username(), password("password", "newPassword", "new-password", t("passwordRule")),
      password("repeated", "repeatPassword", "new-password")], action: "setAndConfirm",
    other: [linkTo(t("knowPassword"), "password")],
    options: () => ({ body: { newPassword: $("password").value } }),
  }),
};

const chosen = element("div", {});
const form = element("form", { class: "card narrow", method: "post", action: "/verify-email", onsubmit: submit },
  element("h1", {}, t("verifyTitle")),
  labelled(t("code"), element("input", { id: "code", autocomplete: "one-time-code", autocapitalize: "off", spellcheck: "false", required: true })),
  chosen);
let proof;
let options;

function show(name) {
  const focus = proof !== undefined;
  proof = name;
  const shown = proofs[proof]();
  options = shown.options;
  chosen.replaceChildren(...shown.fields, element("div", { class: "actions" }, element("button", {}, t(shown.action))), ...shown.other);
  notify("");
  if (focus) chosen.querySelector("input:not([hidden])")?.focus();
}

function submit(event) {
  event.preventDefault();
  unmark(form);
  if (proof === "newPassword" && $("password").value !== $("repeated").value) {
    markInvalid($("repeated"), t("passwordsDiffer"));
    return;
  }
  withButtonsDisabled(form, async () => {
    try {
      const { body, ...rest } = options();
      await call("POST", "/user/verify-email", { ...rest, body: { code: code.value.trim(), ...body } });
      form.hidden = true;
      notify(proof === "newPassword" ? [t("verifiedNew"), " ", element("a", { href: "/" }, t("signIn"))] : t("verified"), "good");
    } catch (error) {
      failed(error);
    }
  });
}

function failed(error) {
  if (error.code === "invalid-code") code.closest(".field").hidden = false;
  // The token of this tab has ended, or is of another account: the person can still confirm with a password.
  if (proof === "token" && [401, 403].includes(error.status)) {
    show("password");
    notify(t(error.status === 401 ? "verifyNotSignedIn" : "verifyOtherAccount"));
  } else if (error.code === "wrong-password") markInvalid($("password"), error.message);
  else if (!markErrors(form, error, { newPassword: "password" })) notify(error.message, "bad");
}

document.title = t("verifyTitle");
showFrame();
$("content").replaceChildren(form);
const code = codeFromLink();
show(token() ? "token" : "password");
