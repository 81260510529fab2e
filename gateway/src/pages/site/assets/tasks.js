// The page of one task. It is opened by links in mails, by the list of tasks, and by dashboards of flow engines.

import { $, element, foreign, notify } from "./dom.js";
import { showFrame } from "./frame.js";
import { decisionForm } from "./decision.js";
import { identify, taskLink } from "./link.js";
import { repeat } from "./retry.js";
import { forgetSecret, signOut, token } from "./session.js";
import { accessTo, findTask, loadTask } from "./task-api.js";
import { taskArticle } from "./task-view.js";
import { t, tWith } from "./texts.js";

const link = taskLink();
// Modules that not everyone needs are loaded beside the task, so that they delay nothing.
for (const module of ["markdown", ...(token() ? ["task-tools"] : [])]) import(`./${module}.js`).catch(() => {});
/** The task as it is shown, to notice changes, and whether it can still change. */
let shown = null;
let isPending = false;

async function show(task) {
  shown = JSON.stringify(task);
  document.title = task.title;
  const comment = $("comment")?.value ?? "";
  const waiting = task.status === "pending";
  isPending = waiting;
  const actions = [];
  if (waiting && task.canDecide) actions.push(decisionForm(task, link.action, { decided, failed }));
  else if (waiting) actions.push(element("p", { class: "soft waiting" }, tWith("waitingFor", { who: foreign(task.approver) })));
  const { ownerTools } = accessTo(task.id).token ? await import("./task-tools.js") : {};
  const more = ownerTools ? [ownerTools(task, refresh)] : [];
  $("content").replaceChildren(await taskArticle(task, ...actions), ...more);
  if ($("comment")) $("comment").value = comment;
}

/** After a decision of this person (`first`) or of someone who was faster. */
async function decided(task, first) {
  await show(task);
  const title = foreign(task.title);
  notify(tWith(`${first ? "done" : "tooLate"} ${task.status}`, { title }), first ? "good" : "bad");
  $("outcome")?.focus();
}

function failed(error) {
  if (error.status === 401 && !link.secret) askToSignIn(t("sessionEnded"));
  else notify(error.status === 404 ? t("oldLink") : error.message, "bad");
}

async function load() {
  if (!link.id) {
    const task = await findTask(link.secret);
    identify(link, task.id);
    return task;
  }
  return loadTask(link.id);
}

/** Loads the task and shows it if it has changed. */
async function refresh() {
  const task = await load();
  // A decision may have been shown meanwhile, and is final.
  const isOld = !isPending && shown !== null && task.status === "pending";
  if (isOld || JSON.stringify(task) === shown || $("content").querySelector("[aria-busy]")) return;
  const isNews = shown !== null;
  await show(task);
  if (isNews) notify(task.status === "pending" ? t("changed") : tWith(`news ${task.status}`, { title: foreign(task.title) }));
}

/** What is shown instead of a task. */
function showApology(title, text, action) {
  document.title = title;
  $("content").replaceChildren(element("section", { class: "card narrow" },
    element("h1", {}, title), element("p", {}, text), element("div", { class: "actions" }, action)));
}

function showError(error) {
  if (error.status === 401 && !link.secret) {
    signOut();
    askToSignIn(t("sessionEnded"));
  } else if (error.status === 404 || error.status === 403) {
    forgetSecret(link.id ?? "");
    const home = element("a", { href: "/", class: "button plain" }, t(token() ? "yourTasks" : "toStart"));
    showApology(t("notFound"), t(link.secret ? "oldLink" : "noSuchTask"), home);
  } else {
    showApology(t("notLoaded"), error.message, element("button", { type: "button", onclick: start }, t("tryAgain")));
  }
}

async function askToSignIn(reason) {
  notify(reason);
  const { signInForm } = await import("./sign-in.js");
  $("content").replaceChildren(signInForm(() => { notify(""); showFrame(); start(); }));
}

async function start() {
  if (!link.secret && !token()) return askToSignIn("");
  notify("");
  $("content").setAttribute("aria-busy", "true");
  try {
    await show(await load());
  } catch (error) {
    showError(error);
  }
  $("content").removeAttribute("aria-busy");
}

if (!link.id && !link.secret) location.replace("/");
else {
  showFrame();
  await start();
  repeat(async () => { if (isPending) await refresh(); });
}
