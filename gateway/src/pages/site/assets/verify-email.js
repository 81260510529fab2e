import { call } from "./api.js";
import { $, element, labelled, notify, withButtonsDisabled } from "./dom.js";
import { showFrame } from "./frame.js";
import { codeFromLink } from "./link.js";
import { t } from "./texts.js";

const form = element("form", { class: "card narrow", method: "post", action: "/verify-email", onsubmit: submit },
  element("h1", {}, t("verifyTitle")),
  labelled(t("code"), element("input", { id: "code", autocomplete: "one-time-code", autocapitalize: "off", spellcheck: "false", required: true })),
  element("div", { class: "actions" }, element("button", {}, t("confirm"))));

function submit(event) {
  event.preventDefault();
  withButtonsDisabled(form, async () => {
    try {
      await call("POST", "/user/verify-email", { body: { code: code.value.trim() } });
      form.hidden = true;
      notify(t("verified"), "good");
    } catch (error) {
      code.closest(".field").hidden = false;
      notify(error.message, "bad");
    }
  });
}

document.title = t("verifyTitle");
showFrame();
$("content").replaceChildren(form);
const code = codeFromLink();
