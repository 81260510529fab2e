// Pages of a person's tasks, for each tab, filter and order.

import { call, listPage } from "./api.js";
import { token } from "./session.js";

const PAGE = 25;

/** What each tab lists. A list of several statuses is made from one list for each. */
export const TABS = {
  decide: { role: "approver", statuses: ["pending"], choices: [], sort: "created:-1" },
  requested: { role: "requester", statuses: [""], choices: ["pending", "approved", "rejected"], sort: "created:-1" },
  created: { role: "creator", statuses: [""], choices: ["pending", "approved", "rejected"], sort: "created:-1" },
  decided: { role: "approver", statuses: ["approved", "rejected"], choices: ["approved", "rejected"], sort: "mtime:-1" },
};

export const SORTS = ["created:-1", "created:1", "mtime:-1", "decisionBy:1", "title:1"];

/** The tab, filters and position that the page's URL names. */
export function stateFromUrl() {
  const given = new URLSearchParams(location.search);
  const tab = given.get("tab") in TABS ? given.get("tab") : "decide";
  const { choices, sort } = TABS[tab];
  return {
    tab,
    search: given.get("search") ?? "",
    status: choices.includes(given.get("status")) ? given.get("status") : "",
    sort: SORTS.includes(given.get("sort")) ? given.get("sort") : sort,
    offsets: (given.get("offset") ?? "").split(",").map((offset) => Math.max(0, Number.parseInt(offset, 10) || 0)),
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
  return url.size > 0 ? `/?${url}` : "/";
}

function query({ tab, search, sort }, status, offset) {
  const parameters = new URLSearchParams({
    role: TABS[tab].role, sort, limit: PAGE, offset, include: "created,mtime,decisionMade", projection: "-description",
  });
  if (status) parameters.set("filter", `status:${status}`);
  if (search) parameters.set("pattern", search);
  return `/people-task/tasks?${parameters}`;
}

/** A page of tasks, and the offsets of the next page or `null`. */
export async function loadPage(state) {
  const statuses = state.status ? [state.status] : TABS[state.tab].statuses;
  const offsets = statuses.map((_, list) => state.offsets[list] ?? 0);
  const pages = await Promise.all(statuses.map((status, list) =>
    listPage(query(state, status, offsets[list]), { token: token() })));
  if (pages.length === 1) {
    const [{ rows, next }] = pages;
    return { rows, next: next && [Number(new URL(next, location.href).searchParams.get("offset"))] };
  }
  return merged(pages, offsets, state.sort);
}

/** The first rows of several sorted lists, and how far each of them was read. */
function merged(pages, offsets, sort) {
  const all = pages.flatMap(({ rows }, list) => rows.map((row) => ({ row, list })));
  const compare = comparison(sort);
  const rows = all.sort((a, b) => compare(a.row, b.row)).slice(0, PAGE);
  const read = offsets.map((offset, list) => offset + rows.filter((one) => one.list === list).length);
  const hasMore = all.length > rows.length || pages.some(({ next }) => next);
  return { rows: rows.map(({ row }) => row), next: hasMore ? read : null };
}

/** Compares two tasks as the service sorts them: what is missing comes last. */
function comparison(sort) {
  const [field, direction] = sort.split(":");
  return (a, b) => {
    if (a[field] === null || b[field] === null) return (a[field] === null) - (b[field] === null);
    return a[field].localeCompare(b[field]) * Number(direction);
  };
}

/** How many tasks wait for this person's decision. */
export async function countToDecide() {
  const { count } = await call("GET", "/people-task/tasks-count?role=approver&filter=status:pending", { token: token() });
  return count;
}
