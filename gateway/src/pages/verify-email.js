import { $, busy, call, codeFromLink, say } from "/assets/page.js";

const code = codeFromLink();

$("form").addEventListener("submit", (event) => {
  event.preventDefault();
  busy(event.target, async () => {
    try {
      await call("POST", "/user/verify-email", { body: { code: code.value.trim() } });
      $("form").hidden = true;
      say("Your e-mail address is confirmed.", "good");
    } catch (error) {
      $("code-field").hidden = false;
      say(error.code === "invalid-code" ? "This code is unknown, used or too old." : error.message, "bad");
    }
  });
});
