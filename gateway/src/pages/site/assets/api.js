// Calls of the API.

import { t } from "./texts.js";

const TIMEOUT = 15_000;
/** Statuses after which the same request may succeed. */
const TEMPORARY = [429, 502, 503, 504];

/** A failed call. Its message is for the user; `temporary` says that trying again may help. */
export class Failure extends Error {
  constructor(message, { status = 0, problem = {}, temporary = false, retryAfter = 0 } = {}) {
    super(message);
    Object.assign(this, { status, problem, code: problem.code, temporary, retryAfter });
  }
}

/** Sends a request. Returns the body and the URL of the next page, if there is one. */
async function send(method, path, { token, secret, body } = {}) {
  const headers = { Accept: "application/json" };
  if (token) headers.Authorization = `Bearer ${token}`;
  if (secret) headers["X-Task-Secret"] = secret;
  if (body !== undefined) headers["Content-Type"] = "application/json";
  let response, text;
  try {
    response = await fetch(path, {
      method, headers, credentials: "omit", cache: "no-store", signal: AbortSignal.timeout(TIMEOUT),
      body: body === undefined ? undefined : JSON.stringify(body),
    });
    text = await response.text();
  } catch {
    throw new Failure(t("noConnection"), { temporary: true });
  }
  const data = parsed(text);
  if (!response.ok) throw failure(response, data);
  return { data, next: nextPage(response.headers.get("Link")) };
}

/** Calls the API. Throws a `Failure`. */
export async function call(method, path, options) {
  return (await send(method, path, options)).data;
}

/** A page of a list: its rows, and the URL of the next page or `null`. */
export async function listPage(path, options) {
  const { data, next } = await send("GET", path, options);
  return { rows: data, next };
}

function parsed(text) {
  try {
    return JSON.parse(text);
  } catch {
    return {};
  }
}

function failure(response, problem) {
  const { status } = response;
  const reasons = (problem.errors ?? []).map((error) => error.message).join(" ");
  const known = t(`problem ${problem.code}`, problem, "");
  return new Failure(known || reasons || problem.detail || t("unexpected", { status }), {
    status, problem, temporary: TEMPORARY.includes(status),
    retryAfter: Number(response.headers.get("Retry-After")) || 0,
  });
}

/** The target of `rel="next"` in a `Link` header (RFC 8288), as a path on this server. */
function nextPage(header) {
  const target = header?.match(/<([^>]*)>\s*;[^,]*rel="?next"?/)?.[1];
  if (!target) return null;
  const url = new URL(target, location.href);
  return url.pathname + url.search;
}
