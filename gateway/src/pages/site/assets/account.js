// The account of a person who is signed in. The pages of the person's browsers and of the API keys have this script, too, and load
// their own later: they need nothing else.

import { call } from "./api.js";
import { $, element, foreign, labelled, markErrors, markInvalid, notify, unmark, withButtonsDisabled } from "./dom.js";
import { isUncertain } from "./http.js";
import { ownPage } from "./own-page.js";
import { isStaying, signIn, token } from "./session.js";
import { signInAndStay } from "./stay.js";
import { t } from "./texts.js";
import { unverifiedNotice } from "./verification.js";

const { start, failed } = ownPage("accountTitle", show);

const password = (id, label, kind, help) => labelled(t(label),
  element("input", { id, type: "password", autocomplete: kind, required: true }), help);

function passwordForm(email) {
  const form = element("form", { class: "card", onsubmit: submit },
    element("h2", {}, t("changePassword")),
    // Tells password managers which account it is.
    element("input", { type: "email", autocomplete: "username", value: email, hidden: true, readonly: true }),
    password("old", "currentPassword", "current-password"),
    password("new", "newPassword", "new-password", t("passwordRule")),
    password("repeated", "repeatPassword", "new-password"),
    element("div", { class: "actions" }, element("button", {}, t("changePassword"))));

  let mayHaveArrived = false;

  function submit(event) {
    event.preventDefault();
    unmark(form);
    if ($("new").value !== $("repeated").value) {
      markInvalid($("repeated"), t("passwordsDiffer"));
      return;
    }
    withButtonsDisabled(form, async () => {
      try {
        const body = { oldPassword: $("old").value, newPassword: $("new").value };
        const wasStaying = isStaying();
        signIn((await call("POST", "/user/change-password", { token: token(), body })).token);
        // The new password ended the session of this browser, too.
        if (wasStaying) await signInAndStay({ email, password: body.newPassword }).catch(() => {});
        form.reset();
        mayHaveArrived = false;
        notify(t("passwordChanged"), "good");
      } catch (error) {
        mayHaveArrived ||= isUncertain(error);
        if (error.code === "wrong-password") markInvalid($("old"), error.message);
        else if (!markErrors(form, error, { newPassword: "new", oldPassword: "old" })) failed(error);
        // The new password ended the session.
        if (error.status === 401 && mayHaveArrived) notify(t("mayBeSet"));
      }
    });
  }
  return form;
}

async function show() {
  const user = await call("GET", "/user", { token: token() });
  const notice = unverifiedNotice();
  $("content").replaceChildren(...(notice ? [notice] : []),
    element("section", { class: "card" }, element("h1", {}, t("accountTitle")),
      element("dl", { class: "facts" }, element("dt", {}, t("email")), element("dd", {}, foreign(user.email)),
        element("dt", {}, t("plan")), element("dd", {}, user.plan)),
      element("p", {}, element("a", { href: "/sessions" }, t("sessionsTitle"))),
      element("p", {}, element("a", { href: "/keys" }, t("keysTitle")))),
    passwordForm(user.email));
}

if (/^\/sessions\b/.test(location.pathname)) import("./sessions.js");
else if (/^\/keys\b/.test(location.pathname)) import("./keys.js").then(({ showOwnKeys }) => showOwnKeys());
else start();
