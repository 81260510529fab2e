// The page of administrators: users, their deletions, webhooks, the audit log and queues. Its state is in the URL.

import { connect, urlOf } from "./admin-state.js";
import { heading } from "./admin-list.js";
import { $, element, focusHeading, notify, notLoaded } from "./dom.js";
import { showFrame, signInAgain } from "./frame.js";
import { currentUser, isAdmin } from "./me.js";
import { repeat } from "./retry.js";
import { signOut, token } from "./session.js";
import { signInForm } from "./sign-in.js";
import { addTexts, language, t } from "./texts.js";

/** What loads the module of each view, and the entry of the navigation that it belongs to. */
const VIEWS = {
  users: { load: () => import("./admin-users.js"), entry: "users" },
  user: { load: () => import("./admin-user.js"), entry: "users" },
  deletions: { load: () => import("./admin-deletions.js"), entry: "deletions" },
  hosts: { load: () => import("./admin-hosts.js"), entry: "hosts" },
  deliveries: { load: () => import("./admin-deliveries.js"), entry: "hosts" },
  audit: { load: () => import("./admin-audit.js"), entry: "audit" },
  queues: { load: () => import("./admin-queues.js"), entry: "queues" },
};
const ENTRIES = ["users", "deletions", "hosts", "audit", "queues"];

/** What refreshes the view that is shown. */
let refresh = async () => {};
/** The newest change of the view: an earlier one whose module comes later is dropped. */
let newest = 0;

const stateFromUrl = () => {
  const state = Object.fromEntries(new URLSearchParams(location.search));
  return { ...state, view: Object.keys(VIEWS).includes(state.view) ? state.view : "users" };
};

/** Reports a failed call. If the session has ended, what the view shows and what is written in it stays for those who sign in. */
async function failed(error) {
  if (error.status === 401) {
    if (!$("view") || !await signInAgain()) return askToSignIn(t("sessionEnded"));
    // A view without a form has shown nothing yet that may be written in.
    await ($("view").querySelector("form") ? refresh().catch(() => {}) : showView(false));
  } else if (error.status === 403) showRefusal();
  else notify(error.message, "bad");
}

async function showView(movesFocus) {
  const request = ++newest;
  const state = stateFromUrl();
  const { load, entry } = VIEWS[state.view];
  for (const link of $("sections").children) {
    if (link.dataset.entry === entry) link.setAttribute("aria-current", "page");
    else link.removeAttribute("aria-current");
  }
  notify("");
  const { show } = await load().catch(notLoaded);
  if (!show || request !== newest) return;
  const view = element("div", { id: "view" });
  $("view").replaceWith(view);
  refresh = show(view, state) ?? (async () => {});
  document.title = `${view.querySelector("h1").textContent} · ${t("administration")}`;
  if (movesFocus) {
    scrollTo({ top: 0 });
    view.querySelector("h1").focus();
  }
}

/** Links within the page change the state without loading it again. */
function followLink(event) {
  const link = event.target.closest("a");
  if (!link || event.ctrlKey || event.metaKey || event.shiftKey || new URL(link.href).pathname !== "/admin") return;
  event.preventDefault();
  history.pushState(null, "", link.href);
  showView(true);
}

/** Removes what is shown of the administration. */
function close() {
  newest += 1;
  refresh = async () => {};
  $("content").classList.remove("admin");
}

function showRefusal() {
  document.title = t("administration");
  close();
  notify("");
  $("content").replaceChildren(element("section", { class: "card narrow" },
    heading(t("administration")), element("p", {}, t("adminsOnly")),
    element("div", { class: "actions" }, element("a", { href: "/", class: "button plain" }, t("toStart")))));
}

function askToSignIn(reason) {
  signOut();
  close();
  notify(reason);
  showFrame();
  $("content").replaceChildren(signInForm(start));
  if (reason) focusHeading();
}

async function start() {
  document.title = t("administration");
  showFrame();
  if (!token()) return askToSignIn("");
  notify("");
  try {
    if (!isAdmin(await currentUser())) return showRefusal();
  } catch (error) {
    $("content").replaceChildren(element("div", { class: "actions narrow" },
      element("button", { type: "button", onclick: start }, t("tryAgain"))));
    return failed(error);
  }
  const link = (entry) => element("a", { href: urlOf({ view: entry }), "data-entry": entry }, t(`section ${entry}`));
  $("content").classList.add("admin");
  $("content").replaceChildren(
    element("nav", { class: "tabs", id: "sections", "aria-label": t("administration") }, ENTRIES.map(link)),
    element("div", { id: "view" }));
  await showView(false);
}

const { texts } = await (language === "de" ? import("./texts/admin-de.js") : import("./texts/admin-en.js"));
addTexts(texts);
connect({ show: showView, failed });
$("content").addEventListener("click", followLink);
addEventListener("popstate", () => { if ($("view")) showView(true); });
await start();
// While a person is asked something, or reads what they opened in a list, nothing changes.
repeat(async () => { if (!document.querySelector("dialog, #list details[open]")) await refresh(); });
