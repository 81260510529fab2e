import { pick } from "./checks.js";
import { DecisionTimeoutError, ProblemError, UnexpectedAnswerError, isTransient } from "./errors.js";
import { backOff, checkSeconds, now, sleep } from "./time.js";
import type { Decision, GetOptions, Task, TaskField, WaitOptions } from "./types.js";

const WEEK = 7 * 24 * 3600;

/** How long the server waits in one call, in seconds: less than most proxies do. */
const POLL = 30;
const SHORTEST_POLL = 4;

/** What a decision always has. */
const FIELDS: readonly TaskField[] = ["comment", "decidedBy", "decisionMade", "decidedVia", "version"];

/**
 * Waits until the task is decided or withdrawn, whatever fails in between, and throws at the end of the time. It ends earlier
 * only if the server refuses the call, such as for a revoked key.
 */
export async function waitForDecision(
  get: (options: GetOptions) => Promise<Task>,
  id: string,
  options: WaitOptions,
): Promise<Decision> {
  const end = now() + checkSeconds("timeout", options.timeout ?? WEEK, 0);
  const include = [...new Set([...FIELDS, ...(options.include ?? [])])];
  const shared = { include, retryFor: 0, ...pick(options, "signal"), ...pick(options, "secret") };
  let [poll, failures, early] = [POLL, 0, 0];
  let cause: unknown;
  for (let isFirst = true; isFirst || now() < end; isFirst = false) {
    const begun = now();
    const wait = Math.min(poll, Math.ceil(end - begun));
    let pause: number;
    try {
      const task = await get(wait >= 1 ? { ...shared, wait } : shared);
      if (isDecision(task)) return task;
      [failures, cause] = [0, undefined];
      // It was answered at once, although the task is pending: by a server that stops or has too many callers.
      early = now() - begun < 1 ? early + 1 : 0;
      pause = early > 0 ? backOff(early) : 0;
    } catch (error) {
      if (options.signal?.aborted || !mayPass(error)) throw error;
      cause = error;
      failures += 1;
      pause = Math.max(backOff(failures), retryAfter(error));
      // A proxy may give up before the server answers.
      if (now() - begun > 2) poll = Math.max(SHORTEST_POLL, Math.floor(poll / 2));
    }
    await sleep(Math.min(pause, Math.max(0, end - now())), options.signal);
  }
  throw new DecisionTimeoutError(id, false, { cause });
}

/** Whether a task that was read with the fields of a decision has ended. */
export function isDecision(task: Task): task is Decision {
  return task.status !== "pending";
}

/** Also the page of a proxy that knows no server now, whatever its status. A redirect stays. */
function mayPass(error: unknown): boolean {
  const isPage = error instanceof UnexpectedAnswerError && !(error.status >= 300 && error.status < 400);
  return isPage || isTransient(error);
}

function retryAfter(error: unknown): number {
  return (error instanceof ProblemError || error instanceof UnexpectedAnswerError ? error.retryAfter : undefined) ?? 0;
}
