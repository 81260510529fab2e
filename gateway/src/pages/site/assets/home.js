// The start page: the tasks of a person who is signed in, and a form to sign in for everyone else.

import { $, element, focusHeading, notify, notLoaded } from "./dom.js";
import { showFrame } from "./frame.js";
import { signOut, token } from "./session.js";
import { signInForm } from "./sign-in.js";
import { t } from "./texts.js";

function showLanding() {
  $("content").replaceChildren(
    element("div", { class: "narrow" },
      element("p", {}, t("welcome")), element("p", { class: "soft" }, t("welcomeMore"))),
    signInForm(start));
}

async function start() {
  notify("");
  showFrame();
  if (!token()) return showLanding();
  const { showInbox } = await import("./inbox.js").catch(notLoaded);
  showInbox?.(() => {
    signOut();
    start();
    notify(t("sessionEnded"));
    focusHeading();
  });
}

start();
