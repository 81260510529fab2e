// The notice for people who have not confirmed their e-mail address.

import { call } from "./api.js";
import { element, notify, withButtonsDisabled } from "./dom.js";
import { signInAgain } from "./frame.js";
import { claims, token } from "./session.js";
import { t } from "./texts.js";

/** A notice with a button that sends the message again, or `null` if the address is confirmed. */
export function unverifiedNotice() {
  if (claims().emailVerified !== false) return null;
  const resend = () => withButtonsDisabled(notice, async () => {
    try {
      await call("POST", "/user/verify-email/resend", { token: token() });
      notify(t("resent"), "good");
    } catch (error) {
      if (error.status === 401) await signInAgain();
      else notify(error.message, "bad");
    }
  });
  const notice = element("section", { class: "card", "aria-label": t("verifyTitle") },
    element("p", {}, t("unverified")),
    element("div", { class: "actions" }, element("button", { type: "button", class: "plain", onclick: resend }, t("resend"))));
  return notice;
}
