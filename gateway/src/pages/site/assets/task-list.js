// Pages of a person's tasks, for each tab, filter and order.

import { call, listPage, offsetOf } from "./api.js";
import { token } from "./session.js";

export const PAGE = 25;

/** What each tab lists. A list of several statuses is made from one list for each. */
export const TABS = {
  decide: { role: "approver", statuses: ["pending"], choices: [], sort: "created:-1" },
  requested: { role: "requester", statuses: [""], choices: ["pending", "approved", "rejected", "cancelled"], sort: "created:-1" },
  created: { role: "creator", statuses: [""], choices: ["pending", "approved", "rejected", "cancelled"], sort: "created:-1" },
  decided: { role: "approver", statuses: ["approved", "rejected"], choices: ["approved", "rejected"], sort: "mtime:-1" },
};

const SORTS = ["created:-1", "created:1", "mtime:-1", "decisionBy:1"];

/** How a tab can be sorted. Several lists are merged here, where texts do not compare as the service compares them. */
export const sortsOf = (tab) => (TABS[tab].statuses.length > 1 ? SORTS : [...SORTS, "title:1"]);

/** The tab, filters and position that the page's URL names. */
export function stateFromUrl() {
  const given = new URLSearchParams(location.search);
  const tab = Object.keys(TABS).includes(given.get("tab")) ? given.get("tab") : "decide";
  const { choices, sort } = TABS[tab];
  return {
    tab,
    search: given.get("search") ?? "",
    status: choices.includes(given.get("status")) ? given.get("status") : "",
    sort: sortsOf(tab).includes(given.get("sort")) ? given.get("sort") : sort,
    offsets: (given.get("offset") ?? "").split(",").map(offsetOf),
  };
}

/** The URL of a state, without what is the default. */
export function urlOf({ tab, search, status, sort, offsets = [] }) {
  const url = new URLSearchParams();
  if (tab !== "decide") url.set("tab", tab);
  if (search) url.set("search", search);
  if (status) url.set("status", status);
  if (sort && sort !== TABS[tab].sort) url.set("sort", sort);
  if (offsets.some((offset) => offset > 0)) url.set("offset", offsets.join(","));
  return [...url.keys()].length > 0 ? `/?${url}` : "/";
}

const statusesOf = ({ tab, status }) => (status ? [status] : TABS[tab].statuses);
const readBefore = (offsets) => offsets.reduce((sum, offset) => sum + offset, 0);

/** Adds the conditions of a list to its parameters. A comma in a filter's value is written with a backslash. */
function addConditions(parameters, status, search) {
  if (status) parameters.append("filter", `status:${status}`);
  if (search) parameters.append("filter", `text:${search.replace(/,/g, "\\,")}`);
}

function query({ tab, search, sort }, status, offset, limit) {
  const parameters = new URLSearchParams({
    role: TABS[tab].role, sort, limit, offset, include: "created,mtime,decisionMade", projection: "-description",
  });
  addConditions(parameters, status, search);
  return `/people-task/tasks?${parameters}`;
}

/** The rows of a list of each status from an offset on, at most as many as `limits` has for it. */
function load(state, offsets, limits) {
  return Promise.all(statusesOf(state).map((status, list) => (limits[list] > 0
    ? listPage(query(state, status, offsets[list], limits[list]), { token: token() }) : { rows: [], next: null })));
}

/** A page of tasks: its rows, its offsets, how many rows are before it, and the offsets of the next page or `null`. */
export async function loadPage(state) {
  const offsets = statusesOf(state).map((_, list) => state.offsets[list] ?? 0);
  const pages = await load(state, offsets, offsets.map(() => PAGE));
  const { rows, read } = merged(pages.map((page) => page.rows), state.sort, PAGE);
  const hasMore = pages.some(({ rows: all, next }, list) => next || all.length > read[list]);
  return { rows, offsets, before: readBefore(offsets), next: hasMore ? offsets.map((offset, list) => offset + read[list]) : null };
}

/** The offsets that are this many rows before others. */
export async function offsetsBefore(state, offsets, number) {
  const starts = offsets.map((offset) => Math.max(0, offset - number));
  if (starts.length === 1 || readBefore(offsets) <= number) return starts;
  const lengths = offsets.map((offset, list) => offset - starts[list]);
  const pages = await load(state, starts, lengths);
  const { read } = merged(pages.map((page) => page.rows), state.sort, readBefore(lengths) - number);
  return starts.map((start, list) => start + read[list]);
}

/** How many tasks each list of a state has. */
export const countAll = (state) => Promise.all(statusesOf(state).map((status) => count(state, status)));

async function count({ tab, search = "" }, status) {
  const parameters = new URLSearchParams({ role: TABS[tab].role });
  addConditions(parameters, status, search);
  return (await call("GET", `/people-task/tasks-count?${parameters}`, { token: token() })).count;
}

/** The first rows of several sorted lists, and how far each of them was read. */
function merged(lists, sort, most) {
  const compare = comparison(sort);
  const read = lists.map(() => 0);
  const rows = [];
  while (rows.length < most) {
    let first = -1;
    for (let list = 0; list < lists.length; list += 1) {
      const row = lists[list][read[list]];
      if (row && (first < 0 || compare(row, lists[first][read[first]]) < 0)) first = list;
    }
    if (first < 0) break;
    rows.push(lists[first][read[first]]);
    read[first] += 1;
  }
  return { rows, read };
}

/** Compares two tasks by a time, as the service sorts them: what is missing comes last. */
function comparison(sort) {
  const [field, direction] = sort.split(":");
  return (a, b) => {
    if (a[field] === null || b[field] === null) return (a[field] === null) - (b[field] === null);
    return a[field].localeCompare(b[field]) * Number(direction);
  };
}

/** How many tasks wait for this person's decision. */
export const countToDecide = () => count({ tab: "decide" }, "pending");
