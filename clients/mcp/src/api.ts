import { setTimeout as sleep } from "node:timers/promises";

import type { Settings } from "./settings.ts";
import { version } from "./version.ts";

/** A task, without its secrets and what the tools do not need. */
export interface Task {
  id: string;
  title: string;
  description: string;
  requester: string;
  approver: string;
  decisionBy: string | null;
  status: "pending" | "approved" | "rejected" | "cancelled";
  comment: string | null;
  decidedBy: string | null;
  decisionMade: string | null;
}

export interface NewTask {
  title: string;
  description?: string;
  requester: string;
  approver: string;
  decisionBy?: string;
  commentRequired?: boolean;
  deciders?: "approver" | "signed-in";
  notify?: boolean;
}

/** Countersign refused a request, or could not be reached. `code` is that of the problem, or `unreachable`. */
export class ApiError extends Error {
  constructor(
    readonly code: string,
    readonly status: number,
    detail: string,
    readonly retryAfter = 0,
  ) {
    super(detail);
  }

  /** Whether the same request may succeed later. */
  get isPassing(): boolean {
    const isServerError = this.status >= 500 && this.status !== 501 && this.status !== 505;
    return isServerError || [0, 408, 429].includes(this.status) || this.code === "idempotency-key-in-use";
  }
}

/** How long a response may take, in seconds, in addition to the time for which the request asks it to wait. */
const RESPONSE_TIME = 15;
/** For how long a request is repeated, in seconds: less than the minute for which many clients wait for a tool. */
const REPEAT_TIME = 40;
const FIRST_PAUSE = 0.5;
const LONGEST_PAUSE = 8;
/** The longest `?wait=`, in seconds. */
export const LONGEST_WAIT = 50;
/** A clock that differs less from that of Countersign, in milliseconds, is right. */
const CLOCK_TOLERANCE = 60_000;
const DETAILS = "include=comment,decidedBy,decisionMade";

interface Call {
  body?: unknown;
  idempotencyKey?: string;
  /** Seconds that the response may take longer. */
  wait?: number;
  signal?: AbortSignal | undefined;
}

/** The calls of Countersign's API that the tools need. There is none that decides. */
export class Api {
  private requester: string | undefined;
  private isKeyChecked = false;
  /** How much the clock of Countersign is ahead, in milliseconds. */
  private ahead = 0;

  constructor(private readonly settings: Settings) {
    this.requester = settings.requester;
  }

  /** The time now by the clock of Countersign, in milliseconds since 1970: that of this computer may be wrong. */
  get serverTime(): number {
    return Date.now() + this.ahead;
  }

  /** Creates a task. Repeating it with the same idempotency key creates nothing twice. */
  async create(task: NewTask, idempotencyKey: string, signal?: AbortSignal): Promise<Task> {
    const created = await this.repeated("POST", "/people-task/tasks", { body: task, idempotencyKey, signal });
    return toTask(created);
  }

  /** Reads a task; if it is pending, after at most `wait` seconds or as soon as it has ended. */
  async get(id: string, wait = 0, signal?: AbortSignal): Promise<Task> {
    const path = `/people-task/tasks/${encodeURIComponent(id)}?${DETAILS}`;
    if (wait === 0) return toTask(await this.repeated("GET", path, { signal }));
    return toTask(await this.call("GET", `${path}&wait=${wait}`, { wait, signal }));
  }

  /** Withdraws a pending task. */
  async cancel(id: string, reason: string | undefined, signal?: AbortSignal): Promise<void> {
    const body = reason === undefined ? {} : { reason };
    await this.repeated("POST", `/people-task/tasks/${encodeURIComponent(id)}/cancel`, { body, signal });
  }

  /** Who needs the decisions: as set, or the user whom the key belongs to. */
  async requesterAddress(signal?: AbortSignal): Promise<string> {
    if (this.requester === undefined) {
      const user = await this.repeated("GET", "/user", { signal });
      if (typeof user.email !== "string") throw new ApiError("unexpected-response", 200, "The user of the key has no address.");
      this.requester = user.email;
    }
    return this.requester;
  }

  /**
   * Refuses a key that may decide: an agent that can read it could approve its own requests. It tries to decide a task
   * that does not exist; what is expected is `insufficient-scope`.
   */
  async refuseDecidingKey(signal?: AbortSignal): Promise<void> {
    if (this.isKeyChecked) return;
    try {
      await this.repeated("PUT", `/people-task/tasks/${"0".repeat(24)}/approve`, { body: {}, signal });
    } catch (error) {
      if (!(error instanceof ApiError)) throw error;
      if (error.code === "insufficient-scope") {
        this.isKeyChecked = true;
        return;
      }
      if (error.status !== 404) throw error;
    }
    throw new ApiError(
      "key-decides",
      403,
      "The API key of this server may decide tasks. Use a key with only tasks:read and tasks:write.",
    );
  }

  /** Makes a request, again and again while its failure may pass. */
  private async repeated(method: string, path: string, call: Call): Promise<Record<string, unknown>> {
    const end = Date.now() + REPEAT_TIME * 1000;
    for (let pause = FIRST_PAUSE; ; pause = Math.min(2 * pause, LONGEST_PAUSE)) {
      try {
        return await this.call(method, path, call);
      } catch (error) {
        if (!(error instanceof ApiError) || !error.isPassing) throw error;
        const seconds = Math.max(pause, error.retryAfter);
        if (Date.now() + seconds * 1000 > end) throw error;
        await sleep(seconds * 1000, undefined, { signal: call.signal });
      }
    }
  }

  /** Makes one request. Responses that say why they fail become an {@link ApiError}, and so do lost connections. */
  private async call(method: string, path: string, { body, idempotencyKey, wait = 0, signal }: Call) {
    const timeout = AbortSignal.timeout((RESPONSE_TIME + wait) * 1000);
    const headers: Record<string, string> = {
      Accept: "application/json",
      Authorization: `Bearer ${this.settings.key}`,
      "User-Agent": `countersign-mcp/${version}`,
    };
    if (body !== undefined) headers["Content-Type"] = "application/json";
    if (idempotencyKey !== undefined) headers["Idempotency-Key"] = idempotencyKey;
    let response: Response;
    let text: string;
    try {
      response = await fetch(this.settings.url + path, {
        method,
        headers,
        body: body === undefined ? null : JSON.stringify(body),
        // A redirect would send the key elsewhere.
        redirect: "error",
        signal: signal ? AbortSignal.any([signal, timeout]) : timeout,
      });
      text = await response.text();
    } catch {
      signal?.throwIfAborted();
      throw new ApiError("unreachable", 0, "Countersign cannot be reached, or does not respond in time.");
    }
    const difference = Date.parse(response.headers.get("Date") ?? "") - Date.now();
    const isOwn = response.headers.get("Content-Type")?.includes("json");
    if (isOwn && Number.isFinite(difference)) this.ahead = Math.abs(difference) < CLOCK_TOLERANCE ? 0 : difference;
    return parse(response, text);
  }
}

function parse(response: Response, text: string): Record<string, unknown> {
  let parsed: unknown;
  try {
    parsed = JSON.parse(text);
  } catch {
    // A page of a proxy.
  }
  const isObject = typeof parsed === "object" && parsed !== null && !Array.isArray(parsed);
  const content = isObject ? (parsed as Record<string, unknown>) : undefined;
  if (response.ok && content) return content;
  if (response.ok) throw new ApiError("unexpected-response", 502, "The response is not one of Countersign's API.");
  const code = typeof content?.code === "string" ? content.code : "unexpected-response";
  const detail = typeof content?.detail === "string" ? content.detail : `Countersign responded with ${response.status}.`;
  const retryAfter = Number(response.headers.get("Retry-After")) || 0;
  throw new ApiError(code, response.status, detail + describeFields(content?.errors), Math.max(0, retryAfter));
}

/** Names the fields of a `validation-failed` problem and what is wrong with them. */
function describeFields(errors: unknown): string {
  if (!Array.isArray(errors)) return "";
  return errors.map(({ field, message }: Record<string, unknown>) => ` ${String(field)}: ${String(message)}`).join("");
}

function toTask(from: Record<string, unknown>): Task {
  const text = (name: string) => (typeof from[name] === "string" ? from[name] : "");
  const optional = (name: string) => (typeof from[name] === "string" ? from[name] : null);
  const status = text("status");
  if (status !== "pending" && status !== "approved" && status !== "rejected" && status !== "cancelled") {
    throw new ApiError("unexpected-response", 502, "The response is not a task.");
  }
  return {
    id: text("id"),
    title: text("title"),
    description: text("description"),
    requester: text("requester"),
    approver: text("approver"),
    decisionBy: optional("decisionBy"),
    status,
    comment: optional("comment"),
    decidedBy: optional("decidedBy"),
    decisionMade: optional("decisionMade"),
  };
}
