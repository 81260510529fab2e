import { $, call, codeFromLink, notify, withButtonsDisabled } from "/assets/page.js";

const code = codeFromLink();

$("form").addEventListener("submit", (event) => {
  event.preventDefault();
  const password = $("password").value;
  if (password !== $("repeated").value) {
    notify("The passwords do not match.", "bad");
    return;
  }
  withButtonsDisabled(event.target, async () => {
    try {
      await call("POST", "/user/forgot-password/reset", { body: { code: code.value.trim(), password } });
      $("form").hidden = true;
      notify("Your password has been changed. You can now sign in with it.", "good");
    } catch (error) {
      if (error.code === "invalid-code") {
        $("code-field").hidden = false;
        notify("This code is invalid or has expired. Request a new message and use the code in it.", "bad");
      } else {
        notify(error.message, "bad");
      }
    }
  });
});
