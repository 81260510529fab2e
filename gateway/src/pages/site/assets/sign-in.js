// The forms for people who are not signed in: sign in, create an account, ask for a new password.

import { call } from "./api.js";
import { $, element, labelled, notify, withButtonsDisabled } from "./dom.js";
import { signIn } from "./session.js";
import { t } from "./texts.js";

function emailField() {
  return labelled(t("email"), element("input", { id: "username", name: "username", type: "email", autocomplete: "username", required: true }));
}

function passwordField(kind, help) {
  return labelled(t("password"),
    element("input", { id: "password", name: "password", type: "password", autocomplete: kind, required: true }), help);
}

/** A form on a card. `links` lead to the other forms. */
function card(title, fields, action, links, send) {
  const submit = (event) => {
    event.preventDefault();
    withButtonsDisabled(form, () => send().catch((error) => notify(error.message, "bad")));
  };
  // Method and action matter to password managers only: scripts send the form.
  const form = element("form", { class: "card narrow", method: "post", action: location.pathname, onsubmit: submit },
    element("h1", {}, title), ...fields,
    element("div", { class: "actions" }, element("button", {}, action)),
    element("p", { class: "links" }, links));
  return form;
}

function switchTo(form, next, done) {
  const other = next(done);
  notify("");
  form().replaceWith(other);
  other.querySelector("input").focus();
}

function linkTo(text, next, done) {
  const button = element("button", { type: "button", class: "link" }, text);
  button.addEventListener("click", () => switchTo(() => button.closest("form"), next, done));
  return button;
}

/** Signs in. `done` is called afterwards. */
export function signInForm(done) {
  return card(t("signInTitle"), [emailField(), passwordField("current-password")], t("signIn"),
    [linkTo(t("createAccount"), signUpForm, done), linkTo(t("forgot"), forgotForm, done)],
    async () => {
      const { token } = await call("POST", "/user/auth", { body: credentials() });
      signIn(token);
      done();
    });
}

function signUpForm(done) {
  return card(t("signUpTitle"), [emailField(), passwordField("new-password", t("passwordRule"))], t("createAccount"),
    [linkTo(t("haveAccount"), signInForm, done)],
    async () => {
      try {
        const { token } = await call("POST", "/user", { body: credentials() });
        signIn(token);
        done();
      } catch (error) {
        if (error.status !== 401 && error.code !== "insufficient-scope") throw error;
        notify(t("signUpClosed"), "bad");
      }
    });
}

function forgotForm(done) {
  const form = card(t("forgotTitle"), [emailField()], t("sendLink"), [linkTo(t("haveAccount"), signInForm, done)],
    async () => {
      await call("POST", "/user/forgot-password", { body: { email: $("username").value.trim() } });
      switchTo(() => form, signInForm, done);
      notify(t("linkSent"), "good");
    });
  return form;
}

const credentials = () => ({ username: $("username").value.trim(), password: $("password").value });
