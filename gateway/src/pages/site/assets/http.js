// Requests to the server that the page came from.

import { language, t } from "./texts.js";
import { setServerTime, timeOfDay } from "./times.js";

const TIMEOUT = 15_000;
/** What the server says of a session or a task, and what a proxy or firewall before it also says, of something else. */
const REFUSALS = [401, 403, 404];
/** Whether the same request may succeed after this status: of the server, or of a proxy before it. */
const isTemporary = (status) => [408, 429].includes(status) || (status >= 502 && status !== 505);

/**
 * A failed call. Its message is for the user; `fields` has a text for each field that the service names, and `temporary` says
 * that trying again may help. The status of a refusal is 0 if it is not the server's.
 */
export class Failure extends Error {
  constructor(message, { status = 0, problem = {}, temporary = false, retryAfter = 0 } = {}) {
    super(message);
    const fields = (problem.errors ?? []).map((error) => ({ field: error.field, code: error.code, text: textOf(error) }));
    Object.assign(this, { status, problem, code: problem.code, fields, temporary, retryAfter });
  }

  /** What the service says about a field, or nothing. */
  about(field) {
    return this.fields.find((one) => one.field === field);
  }
}

/** That there is no answer of the server. */
export const unreachable = () => new Failure(t("noConnection"), { temporary: true });

/** Whether a request that failed may have been carried out all the same: the server does nothing that it refuses. */
export const isUncertain = ({ status }) => status === 0 || status >= 500;

/** A signal that ends a request which takes too long. Browsers before 2022 have no short way to it. */
function timeout() {
  if (AbortSignal.timeout) return AbortSignal.timeout(TIMEOUT);
  const controller = new AbortController();
  setTimeout(() => controller.abort(), TIMEOUT);
  return controller.signal;
}

/**
 * Sends a request. Returns the body and the URL of the next page, if there is one. `key` is what only this request and its repeats
 * have. `session` says that the request is about the browser's session: only then the browser sends and takes its cookie, also if
 * the page is left meanwhile.
 */
export async function request(method, path, { token, secret, body, version, key, session = false } = {}) {
  const headers = { Accept: "application/json" };
  if (token) headers.Authorization = `Bearer ${token}`;
  if (secret) headers["X-Task-Secret"] = secret;
  if (version) headers["If-Match"] = `"${version}"`;
  if (key) headers["Idempotency-Key"] = key;
  if (body !== undefined) headers["Content-Type"] = "application/json";
  let response, text;
  try {
    response = await fetch(path, {
      method, headers, credentials: session ? "same-origin" : "omit", keepalive: session, cache: "no-store", signal: timeout(),
      body: body === undefined ? undefined : JSON.stringify(body),
    });
    text = await response.text();
  } catch {
    throw unreachable();
  }
  setServerTime(response.headers.get("Date"));
  const data = parsed(text);
  if (!response.ok) throw failure(response, data ?? {});
  // What stands before the server may answer in its place, with a page that says nothing about the request.
  if (data === undefined) throw unreachable();
  return { data, next: nextPage(response.headers.get("Link")) };
}

/** What a body says, or `undefined` if it is not JSON. */
function parsed(text) {
  try {
    return text === "" ? {} : JSON.parse(text);
  } catch {
    return undefined;
  }
}

/** The text about a field in the reader's language, by its name and the error's code. */
function textOf({ field = "", code, message = "" }) {
  const [number] = message.match(/\d+/) ?? [];
  const name = field.split(/[.[]/)[0];
  // The texts of the API are English.
  const other = language === "en" ? message : t("invalidField");
  return t(`invalid ${name} ${code}`, { number }, "") || t(`invalid ${code}`, { number }, "") || other;
}

function failure(response, problem) {
  const { status } = response;
  const retryAfter = Number(response.headers.get("Retry-After")) || 0;
  const reasons = [...new Set((problem.errors ?? []).map(textOf))].join(" ");
  const known = t(`problem ${problem.code}`, { ...problem, when: retryAfter ? timeOfDay(retryAfter) : "" }, "");
  const detail = language === "en" ? problem.detail : "";
  const isOurs = typeof problem.code === "string" || !REFUSALS.includes(status);
  return new Failure(reasons || known || detail || t("unexpected", { status }), {
    status: isOurs ? status : 0, problem, temporary: isTemporary(status), retryAfter,
  });
}

/** The target of `rel="next"` in a `Link` header (RFC 8288), as a path on this server. */
function nextPage(header) {
  const target = header?.match(/<([^>]*)>\s*;[^,]*rel="?next"?/)?.[1];
  if (!target) return null;
  const url = new URL(target, location.href);
  return url.pathname + url.search;
}
