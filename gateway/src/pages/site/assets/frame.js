// What surrounds every page: the menu of the header and the footer.

import { $, element, notify } from "./dom.js";
import { knowsAdmin } from "./me.js";
import { forgetEverything, isLeaving, signOut, storage, token } from "./session.js";
import { endSession } from "./stay.js";
import { t } from "./texts.js";

function menuLink(path, text) {
  return element("a", { href: path, "aria-current": location.pathname === path ? "page" : null }, text);
}

/** Signs the person out of this browser. */
export async function leave() {
  forgetEverything();
  await endSession();
  location.assign("/");
}

/** Shows the menu of a person who is signed in, or a link with which to sign in. */
export function showFrame() {
  storage.remove("countersign-reloads");
  showSkipLink();
  if (isLeaving()) endSession();
  $("menu").setAttribute("aria-label", t("menu"));
  $("footer").replaceChildren(element("a", { href: "/docs" }, t("documentation")));
  if (!token()) {
    $("menu").replaceChildren(...(location.pathname === "/" ? [] : [menuLink("/", t("signIn"))]));
    return;
  }
  $("menu").replaceChildren(
    menuLink("/", t("tasks")),
    menuLink("/account", t("account")),
    element("button", { type: "button", class: "link", onclick: leave }, t("signOut")));
  showAdminLink();
}

/**
 * Asks to sign in again above what the page shows, so that nothing of it is lost, and says how that went. Returns whether the
 * person signed in.
 */
export async function signInAgain(say = notify) {
  signOut();
  showFrame();
  const { signInDialog } = await import("./sign-in.js").catch(() => ({}));
  const isDone = await signInDialog?.(t("sessionEnded"));
  if (isDone) showFrame();
  say(t(isDone ? "signedInAgain" : signInDialog ? "sessionEnded" : "noConnection"), isDone ? "" : "bad");
  return isDone;
}

/** Adds a link to the page of administrators, for them. */
async function showAdminLink() {
  const account = $("menu").querySelector("[href='/account']");
  if (await knowsAdmin() && account.isConnected) account.before(menuLink("/admin", t("admin")));
}

/** The link to the content, which is only visible while it has the focus. It leaves the address as it is. */
function showSkipLink() {
  const target = document.querySelector("main, .docs");
  const skip = $("skip");
  skip.textContent = t("skip");
  skip.onclick = (event) => {
    event.preventDefault();
    target.tabIndex = -1;
    target.focus();
  };
}
