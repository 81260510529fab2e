// The forms for people who are not signed in: sign in, create an account, ask for a new password.

import { call } from "./api.js";
import { closeDialog, element, focusHeading, labelled, markErrors, notify, openDialog, unmark, withButtonsDisabled } from "./dom.js";
import { canStay } from "./session.js";
import { signInAndStay, signInHere } from "./stay.js";
import { t } from "./texts.js";

/** The address that was typed last, which every form begins with. */
let email = "";

function emailField(prefix) {
  return labelled(t("email"), element("input", {
    id: `${prefix}username`, name: "username", type: "email", autocomplete: "username", required: true, value: email,
    oninput: ({ target }) => { email = target.value.trim(); },
  }));
}

function passwordField(prefix, kind, help) {
  return labelled(t("password"),
    element("input", { id: `${prefix}password`, name: "password", type: "password", autocomplete: kind, required: true }), help);
}

/** Offers to stay signed in, where the browser can. */
function stayField() {
  if (!canStay()) return null;
  return element("div", { class: "field" },
    element("label", { class: "check" }, element("input", { id: "stay", type: "checkbox" }), t("stay")),
    element("p", { class: "soft small" }, t("stayHelp")));
}

/** What each form shows and sends. */
const FORMS = {
  "sign-in": {
    title: "signInTitle", action: "signIn", links: [["sign-up", "createAccount"], ["forgot-password", "forgot"]],
    fields: (prefix) => [emailField(prefix), passwordField(prefix, "current-password"), stayField()],
    async send(form) {
      if (form.querySelector("#stay")?.checked) return signInAndStay(credentials(form)).then(() => ({ isDone: true }));
      return call("POST", "/user/auth", { body: credentials(form) });
    },
  },
  "sign-up": {
    title: "signUpTitle", action: "createAccount", links: [["sign-in", "haveAccount"]],
    fields: (prefix) => [emailField(prefix), passwordField(prefix, "new-password", t("passwordRule"))],
    async send(form) {
      try {
        return await call("POST", "/user", { body: credentials(form) });
      } catch (error) {
        if (error.status === 401 || error.code === "insufficient-scope") error.message = t("signUpClosed");
        throw error;
      }
    },
  },
  "forgot-password": {
    title: "forgotTitle", action: "sendLink", links: [["sign-in", "haveAccount"]],
    fields: (prefix) => [emailField(prefix)],
    send: () => call("POST", "/user/forgot-password", { body: { email } }).then(() => ({})),
  },
};

const credentials = (form) => ({ username: email, password: form.elements.password.value });

/**
 * A form on a card. `go` shows another one, with a text above it. The ids of its fields begin with `prefix`, because those of the
 * page must be others.
 */
function card(name, done, go, prefix = "") {
  const { title, fields, action, links, send } = FORMS[name];
  const failure = element("p", { class: "error", role: "alert" });
  const submit = (event) => {
    event.preventDefault();
    // Password managers fill fields in without typing.
    email = form.elements.username.value.trim();
    failure.textContent = "";
    unmark(form);
    withButtonsDisabled(form, async () => {
      try {
        const { token, isDone } = await send(form);
        if (!token && !isDone) return go("sign-in", t("linkSent"));
        if (token) signInHere(token);
        done();
      } catch (error) {
        const ids = { email: `${prefix}username`, username: `${prefix}username`, password: `${prefix}password` };
        if (!markErrors(form, error, ids)) failure.textContent = error.message;
      }
    });
  };
  const linkTo = ([other, text]) => element("button", { type: "button", class: "link", onclick: () => go(other) }, t(text));
  // Method and action matter to password managers only: scripts send the form.
  const form = element("form", { class: "card narrow", method: "post", action: location.pathname, onsubmit: submit },
    element("h1", {}, t(title)), ...fields(prefix), failure,
    element("div", { class: "actions" }, element("button", {}, t(action))),
    element("p", { class: "links" }, links.map(linkTo)));
  return form;
}

const nameInAddress = () => {
  const name = new URLSearchParams(location.search).get("form");
  return Object.prototype.hasOwnProperty.call(FORMS, name) ? name : "sign-in";
};

/** The address of a form on the page that shows it. */
function addressOf(name) {
  const query = new URLSearchParams(location.search);
  query.delete("form");
  if (name !== "sign-in") query.set("form", name);
  return location.pathname + (String(query) && `?${query}`) + location.hash;
}

/** Signs in. `done` is called afterwards, and shows the page. Each form has an address of its own. */
export function signInForm(done) {
  const place = element("div", {});
  const application = document.querySelector("meta[name=application-name]").content;
  const show = (name, text) => {
    place.replaceChildren(card(name, finish, go));
    document.title = `${t(FORMS[name].title)} · ${application}`;
    if (text !== undefined) notify(text, text ? "good" : "");
  };
  const go = (name, text) => {
    history.pushState(null, "", addressOf(name));
    show(name, text ?? "");
    place.querySelector("input").focus();
  };
  const back = () => { if (place.isConnected) show(nameInAddress(), ""); };
  const finish = async () => {
    removeEventListener("popstate", back);
    if (location.search.includes("form=")) history.replaceState(null, "", addressOf("sign-in"));
    await done();
    focusHeading();
  };
  addEventListener("popstate", back);
  show(nameInAddress());
  return place;
}

let opened = null;

/** Asks to sign in again above what the page shows. Returns whether the person did. */
export function signInDialog(reason) {
  opened ??= new Promise((resolve) => {
    const close = (isDone) => closeDialog(dialog, isDone ? "yes" : "");
    const said = element("p", { class: "notice", role: "alert" }, reason);
    const show = (name, text = "") => {
      place.replaceChildren(card(name, () => close(true), show, "again-"));
      if (text) said.textContent = text;
      place.querySelector("input").focus();
    };
    const place = element("div", {});
    const dialog = element("dialog", {
      "aria-label": t("signInTitle"),
      onclose: () => {
        opened = null;
        resolve(dialog.returnValue === "yes");
      },
    }, said, place, element("div", { class: "actions" },
      element("button", { type: "button", class: "plain", onclick: () => close(false) }, t("cancel"))));
    openDialog(dialog);
    show("sign-in");
  });
  return opened;
}
