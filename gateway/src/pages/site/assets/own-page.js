// The frame of the pages of a person's own account.

import { $, focusHeading, notify } from "./dom.js";
import { showFrame } from "./frame.js";
import { signOut, token } from "./session.js";
import { signInForm } from "./sign-in.js";
import { t } from "./texts.js";

/**
 * A page for people who are signed in. `show` loads and shows what it has. Returns what starts the page, and what reports a failed
 * call.
 */
export function ownPage(title, show) {
  const askToSignIn = (reason) => {
    signOut();
    notify(reason);
    showFrame();
    $("content").replaceChildren(signInForm(start));
    if (reason) focusHeading();
  };
  const failed = (error) => {
    if (error.status === 401) askToSignIn(t("sessionEnded"));
    else notify(error.message, "bad");
  };
  const start = async () => {
    document.title = t(title);
    showFrame();
    if (!token()) return askToSignIn("");
    notify("");
    await show().catch(failed);
  };
  return { start, failed };
}
