// The page of one task. It is opened by links in mails, by the list of tasks, and by dashboards of flow engines.

import { $, element, focusHeading, foreign, keepingFocus, notify, notLoaded } from "./dom.js";
import { showFrame, signInAgain } from "./frame.js";
import { decisionForm } from "./decision.js";
import { taskLink, withoutSecret } from "./link.js";
import { repeat } from "./retry.js";
import { signOut, token } from "./session.js";
import { accessTo, loadTask } from "./task-api.js";
import { comparison, shortTitle, taskText } from "./task-view.js";
import { t, tWith } from "./texts.js";
import { zonedText } from "./times.js";

const WAITING = 1_000;

const link = taskLink();
// Modules that not everyone needs are loaded beside the task, so that they delay nothing.
import("./markdown.js").catch(() => {});
if (token()) import("./task-tools.js").catch(() => {});
/** The task as it is shown, as the person last read it, its form, and the tools of people who are signed in. */
let shown = null;
let read = null;
let form = null;
let tools = null;
/** Whether somebody who is not the approver has chosen to decide. */
let inPlace = false;

const sameText = (a, b) => JSON.stringify(a) === JSON.stringify(b);

/** What the reader can do with the task. */
function actionsOf(task) {
  if (task.status !== "pending") return null;
  if (task.canDecide && (task.isApprover || inPlace)) {
    form ??= decisionForm(task, link.action, { decided, changed, failed, seen: () => { read = shown; } });
    return form.form;
  }
  if (!task.canDecide) return waiting(task);
  const choose = async () => {
    const compare = await comparison();
    if (inPlace || !$("choice")) return;
    inPlace = true;
    $("choice").replaceWith(actionsOf(shown));
    followBar();
    form.takesPlace();
    // Nothing asked this person yet to read what is new.
    form.update(shown, read === shown ? null : compare(read, shown).list);
    form.form.querySelector(".actions:not([hidden]) button").focus();
  };
  return element("div", { id: "choice", class: "waiting" },
    element("p", {}, tWith("decides", { who: foreign(task.approver) })),
    element("button", { type: "button", class: "plain", onclick: choose }, t("decideYourself")));
}

/** What is said to a person who waits: where it is restricted who decides, also who does, and how to sign in instead of the link. */
function waiting(task) {
  const who = foreign(task.approver);
  const signIn = () => {
    withoutSecret(link);
    return token() ? start() : askToSignIn("");
  };
  const needsAccount = () => [element("p", {}, tWith(`only ${task.deciders}`, { who })),
    element("button", { type: "button", class: "plain", onclick: signIn }, t("signIn"))];
  return element("div", { class: "waiting" }, element("p", { class: "soft" }, tWith("waitingFor", { who })),
    task.deciders && accessTo(task.id).secret ? needsAccount() : null);
}

/** What a requester can do by a link. Who is signed in has more. */
function requesterTools(task) {
  if (!task.isRequester || task.canDecide) return null;
  const open = () => import("./task-form.js").then(({ withdrawDialog }) => withdrawDialog(shown, edited), notLoaded);
  const button = () => element("button", { type: "button", class: "plain", onclick: open }, t("withdraw"));
  return element("section", { "aria-label": t("more") }, task.status === "pending" ? element("div", { class: "actions card" }, button()) : null);
}

/** A printed task says when and from where. */
addEventListener("beforeprint", () => {
  document.querySelector(".printed")?.remove();
  $("content").append(element("p", { class: "printed" }, t("printed", { when: zonedText(new Date()), address: location.origin + location.pathname + location.search })));
});

/**
 * The page scrolls what has the focus out from under what stays at its bottom: the form, or on a low screen its buttons. These say
 * that the text goes on below, until its end was in view above them.
 */
function followBar() {
  const form = document.querySelector(".decision");
  if (!form || !globalThis.ResizeObserver) return;
  const parts = [form, ...form.querySelectorAll(".actions")];
  const [more, end] = [$("more"), element("p", { class: "end" })];
  form.before(end);
  let ends = null;
  const fit = () => {
    const height = parts.map((part) => (part.isConnected ? part.offsetHeight : 0)).find((one) => one > 0) ?? 0;
    document.documentElement.style.setProperty("--bar", `${height + 16}px`);
    ends?.disconnect();
    if (!more?.isConnected) return;
    ends = new IntersectionObserver((entries) => {
      if (entries.some(({ isIntersecting }) => isIntersecting)) more.remove();
      else more.hidden = false;
    }, { rootMargin: `0px 0px ${-height}px` });
    ends.observe(end);
  };
  const observer = new ResizeObserver(fit);
  for (const part of parts) observer.observe(part);
}

/** Shows a task. Its form stays as it is, with the focus and what is written in it, while the text around it changes. */
async function show(task, looks = {}) {
  const text = await taskText(task, looks);
  const { ownerTools } = accessTo(task.id).token ? await import("./task-tools.js").catch(() => ({})) : {};
  document.title = task.title;
  const before = shown;
  shown = task;
  const actions = actionsOf(task);
  const article = document.querySelector("article.task");
  keepingFocus(() => {
    if (article) replaceText(article, text, actions);
    else $("content").replaceChildren(element("article", { class: "card task" }, text, actions));
    showTools(ownerTools ? ownerTools(task, edited) : requesterTools(task), task.status === before?.status);
  });
  if (!article) followBar();
}

function replaceText(article, text, actions) {
  const top = form?.form.getBoundingClientRect().top;
  $("task-text").replaceWith(text);
  const last = article.lastElementChild;
  if (actions !== last) {
    if (last !== text) last.remove();
    if (actions) article.append(actions);
  }
  if (actions === form?.form && actions) scrollBy(0, form.form.getBoundingClientRect().top - top);
}

/** Shows the tools of a task. If it is in the same state, what is written about its webhooks stays. */
function showTools(newer, isSameState) {
  const [old, young] = [tools, newer].map((one) => one?.querySelector("details"));
  if (tools?.isConnected && isSameState && old && young) {
    const parts = [tools, newer].map((one) => one.querySelector(".actions.card"));
    if (parts[0]) parts[0].replaceWith(parts[1]);
    return;
  }
  if (tools?.isConnected && newer) tools.replaceWith(newer);
  else if (newer) $("content").append(newer);
  tools = newer;
}

/** After a decision of this person (`first`) or of someone who was faster. */
async function decided(task, first) {
  await show(task, { isOwn: first });
  notify(first ? "" : tWith(`tooLate ${task.status}`, { title: shortTitle(task) }), first ? "" : "bad");
  $("outcome")?.focus();
  const { wayOn } = await import("./way-on.js").catch(() => ({}));
  wayOn?.($("outcome"), task);
}

/** Shows another version of the pending task, and what the person must read before deciding. */
async function changed(task) {
  const compare = await comparison();
  const { fields, list } = compare(read, task);
  await show(task, { changed: fields, earlier: $("description") });
  // Who may choose to decide reads it then.
  if (!list || !task.canDecide) read = task;
  if (form?.form.isConnected) {
    form.update(task, list);
    if (list) $("change").scrollIntoView({ block: "nearest" });
  } else if (list) notify(t("changed"));
}

/** Shows the task after this person has changed it to `own`. Who decides must still read what was not read before, or is not own. */
async function edited(own) {
  try {
    if (read === shown) read = own;
    const task = await load();
    if (task.status === "pending") await changed(task);
    else if (own.status === "cancelled") await decided(task, true);
    else await show(task);
  } catch (error) {
    // Who handed a task over may not see it any more.
    if (error.status === 404) showApology(t("editedAway"), tWith("editedAwayText", { who: foreign(own.approver) }), toTasks());
    else showError(error);
  }
}

async function failed(error, button) {
  if (error.status === 401 && !link.secret) {
    if (!await signInAgain()) return;
    await refresh().catch(() => {});
    button?.focus();
  } else if (error.status === 404 || error.status === 403) notify(t(link.secret ? "oldLink" : "noSuchTask"), "bad");
  else notify(error.message, "bad");
}

/** The task of the link. If its secret is no longer valid, a person who is signed in may still see it. */
async function load() {
  try {
    return await loadTask(link.id);
  } catch (error) {
    if (error.status !== 404 || !link.secret || !token()) throw error;
    const { secret } = link;
    withoutSecret(link);
    return loadTask(link.id).catch((second) => {
      // Who signs in again may see it.
      if (second.status !== 401) link.secret = secret;
      throw second;
    });
  }
}

/** Loads the task and shows it if it has changed. */
async function refresh() {
  const task = await load();
  // A decision may have been shown meanwhile, and is final.
  const isOld = shown?.status !== "pending" && task.status === "pending";
  if (isOld || sameText(task, shown) || $("content").querySelector(".decision[aria-busy]")) return;
  if (task.status === "pending") return changed(task);
  await show(task);
  notify(tWith(`news ${task.status}`, { title: shortTitle(task) }));
}

/** What is shown instead of a task. */
function showApology(title, text, ...actions) {
  document.title = title;
  $("content").replaceChildren(element("section", { class: "card narrow" },
    element("h1", { tabindex: -1 }, title), element("p", {}, text), element("div", { class: "actions" }, actions)));
  document.querySelector("h1").focus();
}

const toTasks = () => element("a", { href: "/", class: "button plain" }, t(token() ? "yourTasks" : "toStart"));

/** A link that is old, was cut off, or has no secret that this person could do without. */
function showBadLink(name, text) {
  showApology(t(name), text,
    link.id ? element("button", { type: "button", class: "plain", onclick: () => askToSignIn("") }, t("signIn")) : null,
    toTasks());
}

function showError(error) {
  if (error.status === 401 && !link.secret) {
    signOut();
    askToSignIn(t("sessionEnded"));
  } else if (error.status === 404 || error.status === 403) {
    const isOld = Boolean(link.secret);
    if (isOld) withoutSecret(link);
    if (link.isHalf) showBadLink("halfTitle", t("halfLink"));
    else showBadLink("notFound", isOld ? t("oldLink") : `${t("noSuchTask")} ${t("linkNeeded")}`);
  } else {
    showApology(t("notLoaded"), error.message, element("button", { type: "button", onclick: start }, t("tryAgain")));
  }
}

async function askToSignIn(reason) {
  showFrame();
  const { signInForm } = await import("./sign-in.js").catch(notLoaded);
  if (!signInForm) return;
  notify(reason);
  $("content").replaceChildren(signInForm(() => { showFrame(); return start(); }));
  focusHeading();
}

async function start() {
  if (link.isHalf && !(link.id && token())) return showBadLink("halfTitle", t("halfLink"));
  if (!link.secret && !token()) return askToSignIn(t("linkNeeded"));
  notify("");
  $("content").setAttribute("aria-busy", "true");
  const waiting = setTimeout(() => notify(t("loading")), WAITING);
  try {
    const task = await load();
    const isNewer = task.version > link.version && task.status === "pending" && task.canDecide;
    if (isNewer) link.action = null;
    read = task;
    await show(task);
    notify(isNewer ? t("changedSince") : "");
    focusHeading();
  } catch (error) {
    notify("");
    showError(error);
  }
  clearTimeout(waiting);
  $("content").removeAttribute("aria-busy");
}

/** Shows what is new. Who writes nothing that would be lost learns here, too, that the session has ended. */
async function update() {
  if (!$("task-text") || shown.status !== "pending") return;
  try {
    await refresh();
  } catch (error) {
    const mayWrite = document.querySelector(".decision, #content details[open], dialog");
    if (error.status === 401 && !link.secret && !mayWrite && $("task-text")) showError(error);
    throw error;
  }
}

if (!link.id && !link.secret && !link.isHalf) location.replace("/");
else {
  showFrame();
  start().then(() => repeat(update));
}
