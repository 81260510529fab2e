// The browsers in which a person stays signed in. Each can be signed out.

import { call } from "./api.js";
import { $, element, foreign, ignoreSecondPress, notify, withButtonsDisabled } from "./dom.js";
import { leave } from "./frame.js";
import { ownPage } from "./own-page.js";
import { token } from "./session.js";
import { t } from "./texts.js";
import { parseTime, timeFromNow } from "./times.js";

/** Parts of what browsers call themselves. Many also name others, so the first one that is found counts. */
const PROGRAMS = [["Edg", "Edge"], ["OPR/", "Opera"], ["Firefox/", "Firefox"], ["FxiOS/", "Firefox"], ["CriOS/", "Chrome"],
  ["Chrome/", "Chrome"], ["Safari/", "Safari"]];
const SYSTEMS = [["Android", "Android"], ["iPhone", "iPhone"], ["iPad", "iPad"], ["Windows", "Windows"], ["Mac OS X", "macOS"],
  ["CrOS", "ChromeOS"], ["Linux", "Linux"]];

const { start, failed } = ownPage("sessionsTitle", show);

/** What a person calls a program. */
function nameOf(program) {
  const find = (names) => names.find(([part]) => program.includes(part))?.[1];
  const [browser, system] = [find(PROGRAMS), find(SYSTEMS)];
  return browser && system ? t("browserOn", { browser, system }) : browser ?? (program || t("unknownBrowser"));
}

function row(session) {
  const button = element("button", { type: "button", class: "plain", onclick: () => end(session, item) }, t("signOut"));
  const time = (text) => timeFromNow(parseTime(text));
  const item = element("li", {},
    element("p", {}, element("strong", { title: session.program }, foreign(nameOf(session.program))),
      session.current ? element("span", { class: "status approved" }, t("thisBrowser")) : null),
    element("p", { class: "small soft" },
      element("span", {}, t("lastUse"), " ", time(session.lastUsed)), element("span", {}, t("signedInSince"), " ", time(session.created)),
      element("span", {}, foreign(session.network))),
    element("div", { class: "actions" }, button));
  button.setAttribute("aria-label", `${t("signOut")}: ${nameOf(session.program)}`);
  return item;
}

function end(session, item) {
  if (session.current) return leave();
  return withButtonsDisabled(item, async () => {
    try {
      await call("DELETE", `/user/sessions/${session.id}`, { token: token() });
      await show();
      notify(t("sessionEndedThere"), "good");
      $("heading").focus();
    } catch (error) {
      failed(error);
    }
  });
}

async function show() {
  const sessions = await call("GET", "/user/sessions", { token: token() });
  $("content").replaceChildren(
    element("h1", { id: "heading", tabindex: -1 }, t("sessionsTitle")),
    element("p", { class: "soft" }, t("sessionsHelp")),
    sessions.length > 0 ? element("ul", { class: "rows sessions" }, sessions.map(row)) : element("p", { class: "empty" }, t("noSessions")),
    element("p", {}, element("a", { href: "/account" }, t("accountTitle"))));
  ignoreSecondPress($("content"));
}

start();
