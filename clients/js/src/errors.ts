import type { Decision, FieldError, ProblemBody } from "./types.js";

/** What every error of this package extends. Programs check `code`; `message` is for people. No error holds a key or a secret. */
export class CountersignError extends Error {
  readonly code: string;

  constructor(code: string, message: string, options?: { cause?: unknown }) {
    super(message, options);
    this.name = new.target.name;
    this.code = code;
  }
}

/** The server refused the call with a problem (RFC 9457). `code` is the server's, and never changes its meaning. */
export class ProblemError extends CountersignError {
  readonly status: number;
  /** What is wrong, what is expected, and what to do. */
  readonly detail: string;
  /** Quote it when you ask the operator: it is in the logs. */
  readonly requestId: string | undefined;
  /** The invalid fields, if `code` is `validation-failed`. */
  readonly errors: readonly FieldError[];
  /** After how many seconds the server wants to be asked again. */
  readonly retryAfter: number | undefined;
  /** The whole problem, with members of some codes such as `taskStatus`. */
  readonly problem: ProblemBody & Record<string, unknown>;

  constructor(problem: ProblemBody & Record<string, unknown>, status: number, retryAfter: number | undefined) {
    super(problem.code, messageOf(problem));
    this.status = status;
    this.detail = problem.detail;
    this.requestId = problem.requestId;
    this.errors = problem.errors ?? [];
    this.retryAfter = retryAfter;
    this.problem = problem;
  }
}

function messageOf(problem: ProblemBody): string {
  const fields = (problem.errors ?? []).map((error) => `${error.field}: ${error.message}`);
  return [`${problem.code}: ${problem.detail}`, ...fields].join(" ");
}

/** No answer arrived: `code` is `connection-failed`, or `request-timeout` if it took too long. */
export class ConnectionError extends CountersignError {
  declare readonly code: "connection-failed" | "request-timeout";
}

/** What answered is not Countersign, or a proxy answered in its place: `code` is `unexpected-answer`. */
export class UnexpectedAnswerError extends CountersignError {
  readonly status: number;
  readonly retryAfter: number | undefined;

  constructor(message: string, status: number, retryAfter?: number) {
    super("unexpected-answer", message);
    this.status = status;
    this.retryAfter = retryAfter;
  }
}

/** The task is still pending at the end of the time that `ask` or `wait` had: `code` is `decision-timeout`. */
export class DecisionTimeoutError extends CountersignError {
  readonly taskId: string;
  /** Whether `ask` has withdrawn the task, as `withdrawOnTimeout` wants. */
  readonly withdrawn: boolean;

  constructor(taskId: string, withdrawn: boolean, options?: { cause?: unknown }) {
    const end = withdrawn ? "The task was withdrawn." : "It is still pending: wait again, or withdraw it.";
    super("decision-timeout", `Task ${taskId} was not decided in time. ${end}`, options);
    this.taskId = taskId;
    this.withdrawn = withdrawn;
  }
}

/** The person rejected what `ask` asked for: `code` is `rejected`. */
export class RejectedError extends CountersignError {
  readonly decision: Decision;
  /** What the person wrote about it. */
  readonly comment: string | null;

  constructor(decision: Decision) {
    super("rejected", `Task ${decision.id} was rejected.`);
    this.decision = decision;
    this.comment = decision.comment;
  }
}

/** The question of `ask` was withdrawn: `code` is `cancelled`. */
export class CancelledError extends CountersignError {
  readonly decision: Decision;
  /** Why. */
  readonly reason: string | null;

  constructor(decision: Decision) {
    super("cancelled", `Task ${decision.id} was withdrawn.`);
    this.decision = decision;
    this.reason = decision.comment;
  }
}

/** Why a webhook call is not trusted. */
export type VerificationCode =
  | "missing-header"
  | "invalid-timestamp"
  | "timestamp-out-of-range"
  | "no-valid-signature"
  | "invalid-body";

/** A webhook call is not genuine, or too old. Answer it with `401`, and do nothing else. */
export class VerificationError extends CountersignError {
  declare readonly code: VerificationCode;

  constructor(code: VerificationCode, message: string) {
    super(code, message);
  }
}

/** Whether the same call may succeed later: after lost connections, answers such as `429` and `503`, and pages of proxies. */
export function isTransient(error: unknown): boolean {
  if (error instanceof ConnectionError) return true;
  if (error instanceof ProblemError) return isTransientStatus(error.status) || error.code === "idempotency-key-in-use";
  if (!(error instanceof UnexpectedAnswerError)) return false;
  // Proxies answer with a page and 200 while the server starts.
  return isTransientStatus(error.status) || (error.status >= 200 && error.status < 300);
}

function isTransientStatus(status: number): boolean {
  return status === 408 || status === 429 || (status >= 500 && status !== 501 && status !== 505);
}
