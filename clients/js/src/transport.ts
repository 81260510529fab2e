import { ConnectionError, ProblemError, UnexpectedAnswerError, isTransient } from "./errors.js";
import { backOff, checkSeconds, now, retryAfter, sleep } from "./time.js";
import type { ClientOptions, ProblemBody } from "./types.js";
import { VERSION } from "./version.js";

/** More than any answer has: a page of a list has at most 4 MiB. */
const LONGEST_ANSWER = 32 * 1024 * 1024;
/** The longest time of a timer, in milliseconds: what is longer ends at once. */
const LONGEST_TIMER = 2 ** 31 - 1;
/** A clock that differs less from the server's, in milliseconds, is right. */
const CLOCK_TOLERANCE = 60_000;

export interface Call {
  method: "GET" | "POST" | "PUT" | "DELETE";
  path: string;
  query?: URLSearchParams | undefined;
  body?: object | undefined;
  headers?: Record<string, string> | undefined;
  signal?: AbortSignal | undefined;
  /** Seconds for one attempt, in place of the client's. */
  timeout?: number | undefined;
  /** Seconds for which it is tried again, in place of the client's. */
  retryFor?: number | undefined;
  /** Whether it may be repeated if the first call may have been carried out. True by default. */
  repeatable?: boolean;
}

export interface Answer<T> {
  body: T;
  headers: Headers;
  /** Whether an earlier attempt was sent and may have been carried out. */
  wasRepeated: boolean;
}

/** An error, and whether an attempt before the one that failed with it may have been carried out. */
export class Failure {
  constructor(
    readonly error: unknown,
    readonly wasRepeated: boolean,
  ) {}
}

/** Sends calls with the key, and repeats those that failed for a time. */
export class Transport {
  /** The address of the server, without a slash at its end. */
  readonly url: string;
  readonly #authorization: string | undefined;
  readonly #fetch: typeof fetch;
  readonly #timeout: number;
  readonly #retryFor: number;
  readonly #userAgent: string | undefined;
  /** How much the server's clock is ahead, in milliseconds, of a clock that showed this when `performance` began. */
  #ahead = 0;
  #began = 0;

  constructor(options: ClientOptions) {
    this.url = checkUrl(options.url);
    this.#authorization = options.key === undefined ? undefined : `Bearer ${checkKey(options.key)}`;
    this.#fetch = options.fetch ?? ((input, init) => globalThis.fetch(input, init));
    this.#timeout = checkSeconds("timeout", options.timeout ?? 10, 0.001);
    this.#retryFor = checkSeconds("retryFor", options.retryFor ?? 60, 0);
    this.#userAgent = userAgent(options.userAgent);
  }

  /** The client's time-out for one attempt, in seconds. */
  get timeout(): number {
    return this.#timeout;
  }

  /** The time now by the server's clock, in milliseconds since 1970: that of this computer may be wrong. */
  get serverTime(): number {
    // A clock that was set since then has been corrected.
    const isSet = Math.abs(beginning() - this.#began) >= CLOCK_TOLERANCE;
    return Date.now() + (isSet ? 0 : this.#ahead);
  }

  /** Sends a call, and repeats it while that may help. Throws the last error. */
  async send<T>(call: Call): Promise<Answer<T>> {
    const outcome = await this.trySend<T>(call);
    if (outcome instanceof Failure) throw outcome.error;
    return outcome;
  }

  /** Like `send`, but returns the failure. Throws only when the caller's signal is aborted. */
  async trySend<T>(call: Call): Promise<Answer<T> | Failure> {
    const started = now();
    const retryFor = checkSeconds("retryFor", call.retryFor ?? this.#retryFor, 0);
    let wasRepeated = false;
    for (let failures = 1; ; failures++) {
      let error: unknown;
      try {
        const { body, headers } = await this.#attempt<T>(call);
        return { body, headers, wasRepeated };
      } catch (thrown) {
        if (call.signal?.aborted) throw call.signal.reason;
        error = thrown;
      }
      const mayHaveBeenCarriedOut = !isRefusal(error);
      const mayRepeat = isTransient(error) && (call.repeatable !== false || !mayHaveBeenCarriedOut);
      const pause = Math.max(backOff(failures), wanted(error));
      if (!mayRepeat || now() - started + pause > retryFor) return new Failure(error, wasRepeated);
      wasRepeated ||= mayHaveBeenCarriedOut;
      await sleep(pause, call.signal);
    }
  }

  async #attempt<T>(call: Call): Promise<{ body: T; headers: Headers }> {
    const timeout = checkSeconds("timeout", call.timeout ?? this.#timeout, 0.001);
    const body = call.body === undefined ? null : JSON.stringify(call.body);
    const controller = new AbortController();
    const abort = () => controller.abort(call.signal?.reason);
    if (call.signal?.aborted) throw call.signal.reason;
    call.signal?.addEventListener("abort", abort, { once: true });
    let isLate = false;
    const timer = setTimeout(() => {
      isLate = true;
      controller.abort();
    }, Math.min(timeout * 1000, LONGEST_TIMER));
    try {
      const text = String(call.query ?? "");
      const query = text && `?${text}`;
      const response = await this.#fetch(this.url + call.path + query, {
        method: call.method,
        headers: this.#headers(call),
        body,
        signal: controller.signal,
        redirect: "manual",
        credentials: "omit",
        cache: "no-store",
        referrerPolicy: "no-referrer",
      });
      this.#learnTime(response.headers);
      return { body: parse<T>(response, await read(response), this.serverTime), headers: response.headers };
    } catch (error) {
      if (error instanceof ProblemError || error instanceof UnexpectedAnswerError) throw error;
      if (isLate) throw new ConnectionError("request-timeout", `${this.url} did not answer within ${timeout} s.`);
      throw new ConnectionError("connection-failed", `${this.url} could not be reached, or the connection was lost.`, { cause: error });
    } finally {
      clearTimeout(timer);
      call.signal?.removeEventListener("abort", abort);
    }
  }

  #learnTime(headers: Headers): void {
    const difference = Date.parse(headers.get("date") ?? "") - Date.now();
    // The page of a proxy is not the server's.
    if (!Number.isFinite(difference) || !headers.get("content-type")?.includes("json")) return;
    this.#ahead = Math.abs(difference) < CLOCK_TOLERANCE ? 0 : difference;
    this.#began = beginning();
  }

  #headers(call: Call): Record<string, string> {
    const headers: Record<string, string> = { accept: "application/json", ...call.headers };
    if (call.body !== undefined) headers["content-type"] = "application/json";
    if (this.#authorization !== undefined) headers["authorization"] = this.#authorization;
    if (this.#userAgent !== undefined) headers["user-agent"] = this.#userAgent;
    return headers;
  }
}

/** Whether the server says that it has not carried the call out. */
function isRefusal(error: unknown): boolean {
  if (error instanceof ProblemError) {
    // The database may have been lost while it committed.
    const mayBeCommitted = error.code === "database-unavailable";
    return error.status < 500 || (error.status === 503 && error.retryAfter !== undefined && !mayBeCommitted);
  }
  return error instanceof UnexpectedAnswerError && error.status === 429;
}

/** The pause that the server wants, and a little more, so that not all callers come back together. */
function wanted(error: unknown): number {
  const isAnswer = error instanceof ProblemError || error instanceof UnexpectedAnswerError;
  return isAnswer && error.retryAfter !== undefined ? error.retryAfter + Math.random() * 0.25 : 0;
}

/** What this computer's clock would have shown when `performance` began. It changes when the clock is set. */
function beginning(): number {
  return Date.now() - performance.now();
}

async function read(response: Response): Promise<string> {
  if (response.body === null) return response.text();
  const reader = response.body.getReader();
  const decoder = new TextDecoder();
  let [text, length] = ["", 0];
  for (;;) {
    const { done, value } = await reader.read();
    if (done) return text + decoder.decode();
    length += value.byteLength;
    if (length > LONGEST_ANSWER) {
      await reader.cancel();
      throw new UnexpectedAnswerError("The answer is too long.", response.status);
    }
    text += decoder.decode(value, { stream: true });
  }
}

function parse<T>(response: Response, text: string, serverTime: number): T {
  const { status } = response;
  const after = retryAfter(response.headers.get("retry-after"), serverTime);
  if (response.type === "opaqueredirect" || (status >= 300 && status < 400)) {
    throw new UnexpectedAnswerError("The server redirects: use the address that it leads to.", status);
  }
  const type = response.headers.get("content-type") ?? "";
  let body: unknown;
  if (/^application\/([\w.-]+\+)?json\b/i.test(type)) {
    try {
      body = JSON.parse(text);
    } catch {
      // A proxy may have cut it.
    }
  }
  if (response.ok && body !== undefined) return body as T;
  if (!response.ok && isProblem(body)) throw new ProblemError(body, status, after);
  throw new UnexpectedAnswerError(`The answer (status ${status}) is not one of Countersign.`, status, after);
}

function isProblem(body: unknown): body is ProblemBody & Record<string, unknown> {
  if (typeof body !== "object" || body === null) return false;
  return "code" in body && typeof body.code === "string" && "detail" in body && typeof body.detail === "string";
}

function checkUrl(text: string | URL): string {
  const url = parseUrl(text);
  if (!url || !["http:", "https:"].includes(url.protocol)) {
    throw new TypeError("`url` must be the server's address, such as https://countersign.example.com.");
  }
  if (url.username || url.password || url.search || url.hash) {
    throw new TypeError("`url` must have no user name, password, query or fragment.");
  }
  return url.origin + url.pathname.replace(/\/+$/, "");
}

function parseUrl(text: string | URL): URL | undefined {
  try {
    return new URL(text);
  } catch {
    return undefined;
  }
}

/** Says nothing about the key itself. */
function checkKey(key: string): string {
  if (typeof key !== "string" || !/^[\x21-\x7e]+$/.test(key)) {
    throw new TypeError("`key` must be an API key (`csk_…`) or an access token, without spaces.");
  }
  return key;
}

/** Browsers have a user agent of their own, and would ask the server whether another one is allowed. */
function userAgent(application: string | undefined): string | undefined {
  const platform = globalThis as { process?: { versions?: { node?: string } }; Deno?: object; document?: object };
  const isServer = platform.Deno !== undefined || (platform.process?.versions?.node !== undefined && platform.document === undefined);
  if (application !== undefined && !/^[\x20-\x7e]+$/.test(application)) {
    throw new TypeError("`userAgent` must have printable ASCII characters.");
  }
  if (!isServer) return undefined;
  return [application, `countersign-js/${VERSION}`].filter(Boolean).join(" ");
}
