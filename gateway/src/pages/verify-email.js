import { $, call, codeFromLink, notify, withButtonsDisabled } from "/assets/page.js";

const code = codeFromLink();

$("form").addEventListener("submit", (event) => {
  event.preventDefault();
  withButtonsDisabled(event.target, async () => {
    try {
      await call("POST", "/user/verify-email", { body: { code: code.value.trim() } });
      $("form").hidden = true;
      notify("Your e-mail address is confirmed.", "good");
    } catch (error) {
      $("code-field").hidden = false;
      notify(error.code === "invalid-code" ? "This code is invalid or has expired." : error.message, "bad");
    }
  });
});
