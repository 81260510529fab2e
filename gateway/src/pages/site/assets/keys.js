// The API keys of a person, with which programs act for them.

import { $, element, notLoaded, notify } from "./dom.js";
import { showFrame } from "./frame.js";
import { signOut, token } from "./session.js";
import { signInForm } from "./sign-in.js";
import { t } from "./texts.js";

function failed(error) {
  if (error.status === 401) askToSignIn(t("sessionEnded"));
  else notify(error.message, "bad");
}

function askToSignIn(reason) {
  signOut();
  notify(reason);
  showFrame();
  $("content").replaceChildren(signInForm(start));
}

async function start() {
  document.title = t("keysTitle");
  showFrame();
  if (!token()) return askToSignIn("");
  notify("");
  const keys = element("div", {});
  try {
    const { showKeys } = await import("./key-list.js").catch(notLoaded);
    await showKeys?.(keys, "/user/keys", failed);
    $("content").replaceChildren(
      element("h1", { id: "heading", tabindex: -1 }, t("keysTitle")),
      element("p", { class: "soft" }, t("keysHelp")), keys,
      element("p", {}, element("a", { href: "/account" }, t("accountTitle"))));
  } catch (error) {
    failed(error);
  }
}

start();
