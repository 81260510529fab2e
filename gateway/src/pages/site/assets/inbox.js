// The list of a person's tasks: tabs, search, filters, pages. Its state is in the URL.

import { $, element, foreign, forgetFailure, isSaid, labelled, notify } from "./dom.js";
import { repeat } from "./retry.js";
import { createDialog } from "./task-form.js";
import { countAll, countToDecide, loadPage, offsetsBefore, PAGE, sortsOf, stateFromUrl, TABS, urlOf } from "./task-list.js";
import { due, statusBadge } from "./task-view.js";
import { numberText, t, tWith } from "./texts.js";
import { parseTime, timeFromNow } from "./times.js";
import { unverifiedNotice } from "./verification.js";

const TYPING_PAUSE = 300;

let state = stateFromUrl();
/** What the list shows, to render it only after changes. */
let shown = "";
/** The newest request: a response to an earlier one is dropped. */
let newest = 0;
let sessionEnded;

function rowOf(task) {
  const decided = parseTime(task.decisionMade);
  const person = TABS[state.tab].role === "approver" ? ["from", task.requester] : ["to", task.approver];
  return element("li", {},
    element("a", { class: "title", href: `/tasks?taskId=${task.id}`, id: `task-${task.id}`, dir: "auto" }, task.title),
    element("p", { class: "small" },
      state.tab === "decide" ? null : statusBadge(task.status),
      element("span", { class: "soft" }, tWith(person[0], { who: foreign(person[1]) })),
      task.status === "pending" ? due(task) : decided ? element("span", { class: "soft" }, timeFromNow(decided)) : null,
      task.status === "pending" && !task.decisionBy
        ? element("span", { class: "soft" }, tWith("createdAt", { when: timeFromNow(parseTime(task.created)) })) : null));
}

function render({ rows, before, next }, all, previous) {
  const focused = document.activeElement?.id;
  $("rows").replaceChildren(...rows.map(rowOf));
  const pageLink = (offsets, text) => element("a", { id: text, class: "button plain", href: urlOf({ ...state, offsets }) }, t(text));
  const range = { from: numberText(before + 1), to: numberText(before + rows.length), count: numberText(all) };
  $("pages").replaceChildren(
    before > PAGE ? pageLink([], "firstPage") : "",
    before > 0 ? pageLink(previous, "previousPage") : "",
    next ? pageLink(next, "nextPage") : "");
  const nothing = t(state.search || state.status ? "nothingFound" : `empty ${state.tab}`);
  $("summary").className = rows.length === 0 ? "empty" : "soft small summary";
  $("summary").textContent = rows.length === 0 ? nothing : t(before > 0 || next ? "range" : "found", range);
  // What had the focus is another element now, or gone.
  if (focused && document.activeElement === document.body) ($(focused) ?? $("heading")).focus({ preventScroll: true });
}

/** Loads what the state says. Only a changed list is rendered again. */
async function refresh() {
  const request = ++newest;
  try {
    const counting = countAll(state);
    // The list of what is to be decided is counted anyway.
    const toDecide = state.tab === "decide" && !state.search ? counting.then(([number]) => number) : countToDecide();
    const [page, count, counts] = await Promise.all([loadPage(state), toDecide, counting]);
    const all = counts.reduce((sum, one) => sum + one, 0);
    const isPastEnd = page.rows.length === 0 && page.before > 0;
    const previous = await (isPastEnd ? offsetsBefore(state, counts, (all - 1) % PAGE + 1) : offsetsBefore(state, page.offsets, PAGE));
    if (request !== newest) return;
    if (isPastEnd) return go({ offsets: previous });
    showCount(count);
    const text = JSON.stringify([state, page, all]);
    if (text !== shown) render(page, all, previous);
    forgetFailure();
    shown = text;
    $("list").removeAttribute("aria-busy");
  } catch (error) {
    if (request !== newest) return;
    $("list").removeAttribute("aria-busy");
    if (error.status === 401 && document.querySelector("dialog")) return;
    if (error.status === 401) return sessionEnded();
    if (!isSaid(error)) notify(error.message, "bad");
    throw error;
  }
}

function showCount(count) {
  const text = count > 0 ? ` ${numberText(count)}` : "";
  $("count").textContent = text;
  document.title = `${text ? `(${text.trim()}) ` : ""}${t("yourTasks")}`;
}

/** Shows another state. `mode` is what happens to the browser's history. */
function go(changes, mode = "replaceState") {
  state = { ...state, offsets: [0], ...changes };
  history[mode](null, "", urlOf(state));
  showControls();
  $("list").setAttribute("aria-busy", "true");
  forgetFailure();
  refresh().catch(() => {});
}

/** Links within the page change the state without loading it again. */
function followLink(event) {
  const link = event.target.closest("a");
  if (!link || event.ctrlKey || event.metaKey || event.shiftKey || new URL(link.href).pathname !== "/") return;
  event.preventDefault();
  history.pushState(null, "", link.href);
  state = stateFromUrl();
  go(state);
  if (link.closest("#pages")) {
    scrollTo({ top: 0 });
    $("heading").focus();
  }
}

function tabs() {
  return Object.keys(TABS).map((tab) => element("a", { href: urlOf({ tab }), "data-tab": tab },
    t(`tab ${tab}`), tab === "decide" ? element("span", { id: "count" }) : null));
}

const option = (value, text, chosen) => element("option", { value, selected: value === chosen }, text);

/** Tabs and selections as the state says. What may have the focus is never replaced. */
function showControls() {
  for (const link of $("tabs").children) {
    if (link.dataset.tab === state.tab) link.setAttribute("aria-current", "page");
    else link.removeAttribute("aria-current");
  }
  const { choices } = TABS[state.tab];
  $("status").replaceChildren(option("", t("anyStatus"), state.status),
    ...choices.map((status) => option(status, t(`status ${status}`), state.status)));
  $("status").closest(".field").hidden = choices.length === 0;
  $("sort").replaceChildren(...sortsOf(state.tab).map((sort) => option(sort, t(`sort ${sort}`), state.sort)));
  if ($("search") !== document.activeElement) $("search").value = state.search;
}

function filters() {
  let typing;
  const search = element("input", {
    id: "search", type: "search", autocomplete: "off", enterkeyhint: "search",
    oninput: () => {
      clearTimeout(typing);
      typing = setTimeout(() => go({ search: search.value.trim() }), TYPING_PAUSE);
    },
  });
  const select = (id) => element("select", { id, onchange: (event) => go({ [id]: event.target.value }) });
  const form = element("form", { class: "filters", role: "search", onsubmit: (event) => event.preventDefault() },
    labelled(t("search"), search), labelled(t("statusFilter"), select("status")), labelled(t("sort"), select("sort")));
  form.firstElementChild.classList.add("search");
  return form;
}

function layout() {
  const create = () => createDialog(() => go({ tab: "created", search: "", status: "" }, "pushState"));
  return [
    unverifiedNotice(),
    element("div", { class: "bar" },
      element("h1", { id: "heading", tabindex: -1 }, t("yourTasks")),
      element("button", { type: "button", onclick: create }, t("newTask"))),
    element("nav", { class: "tabs", id: "tabs", "aria-label": t("lists"), onclick: followLink }, tabs()),
    filters(),
    element("section", { id: "list", "aria-busy": "true", "aria-label": t("tasks") },
      element("p", { class: "soft small summary", id: "summary", role: "status" }),
      element("ul", { class: "rows", id: "rows" })),
    element("nav", { class: "pages", id: "pages", "aria-label": t("pages"), onclick: followLink }),
  ].filter(Boolean);
}

/** Shows the list, and keeps it up to date. `ended` is called when the token is no longer valid. */
export function showInbox(ended) {
  const isFirst = !sessionEnded;
  sessionEnded = ended;
  shown = "";
  $("content").replaceChildren(...layout());
  showControls();
  refresh().catch(() => {});
  if (!isFirst) return;
  addEventListener("popstate", () => {
    // The form to sign in may have taken the place of the list.
    if (!$("rows")) return;
    state = stateFromUrl();
    go(state);
  });
  repeat(async () => { if ($("rows")) await refresh(); });
}
