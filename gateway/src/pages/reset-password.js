import { $, busy, call, codeFromLink, say } from "/assets/page.js";

const code = codeFromLink();

$("form").addEventListener("submit", (event) => {
  event.preventDefault();
  const password = $("password").value;
  if (password !== $("repeated").value) {
    say("The two passwords differ. Type the same one twice.", "bad");
    return;
  }
  busy(event.target, async () => {
    try {
      await call("POST", "/user/forgot-password/reset", { body: { code: code.value.trim(), password } });
      $("form").hidden = true;
      say("Your new password is set. You can sign in with it now.", "good");
    } catch (error) {
      if (error.code === "invalid-code") {
        $("code-field").hidden = false;
        say("This code is unknown, used or too old. Ask for a new message and use the newest one.", "bad");
      } else {
        say(error.message, "bad");
      }
    }
  });
});
