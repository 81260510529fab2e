// What administrators call of the API.

import { call, listPage } from "./api.js";
import { token } from "./session.js";

/** The rows of a page, unless the caller wants another number. */
export const PAGE = 25;

const authorized = (body) => ({ token: token(), body });
const send = (method, path, body) => call(method, path, authorized(body));

/** A comma separates filters. */
const filterOf = (field, value) => `${field}:${value.replaceAll(",", "\\,")}`;

/** The URL of a list. Filters and parameters without a value are left out. */
function listUrl(path, filters, parameters) {
  const query = new URLSearchParams(Object.entries(parameters).filter(([, value]) => value));
  for (const [field, value] of Object.entries(filters)) if (value) query.append("filter", filterOf(field, value));
  return `${path}?${query}`;
}

/** A page of a list, and the position of the next page or an empty text. */
async function page(path, filters, parameters, position = "offset") {
  const { rows, next } = await listPage(listUrl(path, filters, { limit: PAGE, ...parameters }), authorized());
  return { rows, next: next ? new URL(next, location.href).searchParams.get(position) : "" };
}

const userFilters = ({ active, email, scope, plan, vendor }) => ({ isActive: active, email, scope, plan, vendor });

export const listUsers = (state) =>
  page("/users", userFilters(state), { pattern: state.search, sort: state.sort, offset: state.offset });
export const countUsers = async (state) =>
  (await call("GET", listUrl("/users/count", userFilters(state), { pattern: state.search }), authorized())).count;
export const signUp = (user) => send("POST", "/user", user);
/** Identifiers of the page's URL are what anyone wrote there. */
const userPath = (id) => `/users/${encodeURIComponent(id)}`;
const deletionPath = (id, ticket) => `${userPath(id)}/delete-status/${encodeURIComponent(ticket)}`;
export const loadUser = (id) => send("GET", userPath(id));
export const updateUser = (id, changes) => send("PUT", userPath(id), changes);
export const revokeTokens = (id) => send("POST", `${userPath(id)}/revoke-tokens`);

export const startDeletion = async (id) => (await send("DELETE", userPath(id))).ticket;
/** The progress of a deletion. How many tasks it has deleted is only in the list. */
export async function loadDeletion(id, ticket) {
  const deletion = await send("GET", deletionPath(id, ticket));
  if (deletion.status !== "in-progress") return deletion;
  const listed = page("/users/deletions", { status: "in-progress" }, { limit: 100 });
  const { rows } = await listed.catch(() => ({ rows: [] }));
  return { ...deletion, deletedTasks: rows.find((row) => row.ticket === ticket)?.deletedTasks };
}
export const cancelDeletion = (id, ticket) => send("DELETE", deletionPath(id, ticket));
export const listDeletions = ({ offset }) => page("/users/deletions", {}, { offset });
export const retryDeletions = () => send("POST", "/users/deletions/retry");

export const listHosts = ({ status, after }) => page("/people-task/deliveries/hosts", {}, { status, after }, "after");
/** The numbers of one host. */
export const loadHost = async (host) => (await send("GET", listUrl("/people-task/deliveries/hosts", {}, { host })))[0];
/** The hosts that are paused, as many as one response has. */
export const loadPausedHosts = () => send("GET", listUrl("/people-task/deliveries/hosts", {}, { status: "paused", limit: 200 }));
export const pauseHost = (host) => send("POST", "/people-task/deliveries/pause", { host });
export const resumeHost = (host) => send("POST", "/people-task/deliveries/resume", { host });
export const listDeliveries = ({ host, status, offset }) =>
  page("/people-task/deliveries", { status, host }, { offset });
export const sendDelivery = (id) => send("POST", `/people-task/deliveries/${id}/redeliver`);
export const cancelDelivery = (id) => send("POST", `/people-task/deliveries/${id}/cancel`);

/** What remains of a host is counted up to this number. */
const MAX_REMAINING = 100_000;
/** A limit on the calls for a host, each of which changes up to 1,000 deliveries. */
const MAX_CALLS = 10_000;

/**
 * Changes the deliveries of a host, of which the API changes a limited number in one call. It ends when as many were
 * changed as there were when all were counted, because a delivery that is sent again may fail again. Returns how many were
 * changed, and how many are left that could not be.
 */
async function changeHost(host, action, counted) {
  let total = 0;
  let most = Infinity;
  for (let call = 1; ; call += 1) {
    const result = await send("POST", `/people-task/deliveries/${action}`, { host });
    total += result[counted];
    if (result.remaining < MAX_REMAINING) most = Math.min(most, total + result.remaining);
    if (total >= most) return { count: total, left: 0 };
    if (result[counted] === 0 || call === MAX_CALLS) return { count: total, left: result.remaining };
  }
}
export const sendFailed = (host) => changeHost(host, "redeliver", "redelivered");
export const cancelPending = (host) => changeHost(host, "cancel", "cancelled");

export const listAudit = ({ of, sort, offset, limit = PAGE, ...filters }) => {
  const { action, actor, subject, requestId, after, before } = filters;
  return page(of === "tasks" ? "/people-task/audit" : "/audit", { action, actor, subject, requestId, after, before },
    { sort, offset, limit });
};

/** Calls `work` for one identifier after another. Returns how many succeeded, those that failed, and why. */
export async function eachOf(ids, work) {
  const failed = [];
  let message = "";
  for (const id of ids) {
    try {
      await work(id);
    } catch (error) {
      if (error.status === 401) throw error;
      failed.push(id);
      ({ message } = error);
    }
  }
  return { done: ids.length - failed.length, failed, message };
}

/** The queues of both services. */
export const loadQueues = () => Promise.all([send("GET", "/people-task/queues"), send("GET", "/users/queues")]);
