import { call } from "./api.js";
import { $, element, labelled, markErrors, markInvalid, notify, unmark, withButtonsDisabled } from "./dom.js";
import { showFrame } from "./frame.js";
import { isUncertain } from "./http.js";
import { codeFromLink } from "./link.js";
import { t } from "./texts.js";

const password = (id, label, help) => labelled(t(label),
  element("input", { id, name: id, type: "password", autocomplete: "new-password", required: true }), t(help, {}, ""));

const form = element("form", { class: "card narrow", method: "post", action: "/reset-password", onsubmit: submit },
  element("h1", {}, t("newPasswordTitle")),
  labelled(t("code"), element("input", { id: "code", autocomplete: "one-time-code", autocapitalize: "off", spellcheck: "false", required: true })),
  password("password", "newPassword", "signsOut"),
  password("repeated", "repeatPassword"),
  element("div", { class: "actions" }, element("button", {}, t("setPassword"))));

const signInLink = () => element("a", { href: "/" }, t("signIn"));

let mayHaveArrived = false;

function submit(event) {
  event.preventDefault();
  unmark(form);
  if ($("password").value !== $("repeated").value) {
    markInvalid($("repeated"), t("passwordsDiffer"));
    return;
  }
  withButtonsDisabled(form, async () => {
    try {
      await call("POST", "/user/forgot-password/reset", { body: { code: code.value.trim(), password: $("password").value } });
      form.hidden = true;
      notify([t("passwordSet"), " ", signInLink()], "good");
    } catch (error) {
      mayHaveArrived ||= isUncertain(error);
      if (error.code === "invalid-code") {
        code.closest(".field").hidden = false;
        markInvalid(code, `${error.message} ${t("requestAnother")}`);
        if (mayHaveArrived) notify([t("mayBeSet"), " ", signInLink()]);
      } else if (!markErrors(form, error)) notify(error.message, "bad");
    }
  });
}

document.title = t("newPasswordTitle");
showFrame();
$("content").replaceChildren(form);
const code = codeFromLink();
