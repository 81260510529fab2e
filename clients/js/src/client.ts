import { checkId, checkIdempotencyKey, limits, pick } from "./checks.js";
import { CancelledError, CountersignError, DecisionTimeoutError, ProblemError, RejectedError, UnexpectedAnswerError } from "./errors.js";
import { WebhookKeys } from "./keys.js";
import { filterQuery, listTasks } from "./lists.js";
import { hideSecrets } from "./secrets.js";
import { randomKey, verifyCall } from "./signatures.js";
import { type Answer, type Call, Failure, Transport } from "./transport.js";
import type * as types from "./types.js";
import { type HeadersLike, type RawBody, verify } from "./verify.js";
import { waitForDecision } from "./waiting.js";
import { Webhooks } from "./webhooks.js";

const TASKS = "/people-task/tasks";
const STATUSES: readonly unknown[] = ["pending", "approved", "rejected", "cancelled"];

/** A client of one Countersign server. It holds no connection, and its key is never shown. */
export class Countersign {
  /** Register, list, try and delete webhooks, and see how they were delivered. */
  readonly webhooks: Webhooks;
  readonly #transport: Transport;
  readonly #keys: WebhookKeys;
  #requester: string | undefined;

  constructor(options: types.ClientOptions) {
    this.#transport = new Transport(options);
    this.#keys = new WebhookKeys(this.#transport);
    this.#requester = options.requester;
    this.webhooks = new Webhooks(this.#transport);
  }

  /** The server's address. */
  get url(): string {
    return this.#transport.url;
  }

  /** The time by the server's clock, if an answer has shown that this computer's is off by a minute or more. Due dates pass by it. */
  now(): Date {
    return new Date(this.#transport.serverTime);
  }

  /**
   * Asks a person, and waits for the decision. It returns only if the person approved.
   *
   * Throws a `RejectedError`, `CancelledError` or `DecisionTimeoutError` otherwise. It goes on through restarts of the server and
   * lost connections. The same `idempotencyKey` within 24 hours waits for the same task, also from another process.
   */
  async ask(question: types.Question, options: types.AskOptions = {}): Promise<types.Approval> {
    const task = await this.create(question, { ...pick(options, "idempotencyKey"), ...pick(options, "signal") });
    await options.onCreated?.(task);
    const waiting = { ...pick(options, "include"), ...pick(options, "signal") };
    const { timeout } = options;
    let decision: types.Decision;
    try {
      decision = await (timeout === undefined ? this.#waitUntilDue(task.id, question, waiting) : this.wait(task.id, { ...waiting, timeout }));
    } catch (error) {
      if (!(error instanceof DecisionTimeoutError) || !options.withdrawOnTimeout) throw error;
      decision = await this.#withdraw(task.id, error, waiting);
    }
    if (decision.status === "rejected") throw new RejectedError(decision);
    if (decision.status === "cancelled") throw new CancelledError(decision);
    return decision as types.Approval;
  }

  /** Waits until the due date of a question, which may be moved meanwhile. */
  async #waitUntilDue(id: string, question: types.Question, waiting: types.WaitOptions): Promise<types.Decision> {
    for (let due = question.decisionBy; ; ) {
      const timeout = secondsUntil(due, this.#transport.serverTime);
      try {
        return await this.wait(id, timeout === undefined ? waiting : { ...waiting, timeout });
      } catch (error) {
        if (timeout === undefined || !(error instanceof DecisionTimeoutError)) throw error;
        const task = await this.get(id, pick(waiting, "signal")).catch(() => undefined);
        waiting.signal?.throwIfAborted();
        const isDue = task?.status === "pending" && secondsUntil(task.decisionBy, this.#transport.serverTime) === 0;
        if (!task || isDue) throw error;
        due = task.decisionBy;
      }
    }
  }

  /** Creates a task, and its webhooks if the question has some. Repeats after failures make no second one. */
  async create(question: types.Question, options: types.CreateOptions = {}): Promise<types.CreatedTask> {
    const { decisionBy, ...fields } = question;
    const requester = question.requester ?? (await this.#ownAddress(options));
    const body = { ...fields, requester, ...dateField(decisionBy ?? undefined) };
    const headers = { "idempotency-key": checkIdempotencyKey(options.idempotencyKey ?? randomKey()) };
    const task = await this.#call<types.CreatedTask>({ method: "POST", path: TASKS, body, headers }, options);
    return hideSecrets(checkTask(task));
  }

  /**
   * Waits until a task is decided or withdrawn, and returns how it ended.
   *
   * Throws a `DecisionTimeoutError` at the end of the time. It goes on through restarts of the server and lost connections, and
   * ends earlier only if the server refuses the call, such as for a revoked key.
   */
  wait(id: string, options: types.WaitOptions = {}): Promise<types.Decision> {
    return waitForDecision((how) => this.get(id, how), id, options);
  }

  /** Reads a task. With `wait`, the answer comes when the task ends or that time is over. */
  async get(id: string, options: types.GetOptions = {}): Promise<types.Task> {
    const query = new URLSearchParams();
    if (options.include?.length) query.set("include", options.include.join(","));
    if (options.wait !== undefined) query.set("wait", String(options.wait));
    const timeout = (options.timeout ?? this.#transport.timeout) + (options.wait ?? 0);
    return checkTask(await this.#call({ method: "GET", path: taskPath(id), query, headers: secretHeader(options) }, { ...options, timeout }));
  }

  /**
   * Changes a pending task. A new approver gets a new secret, which the result has for the task's creator and administrators.
   *
   * If an answer is lost, the call is repeated as it is, and the result may lack that secret. To be sure to get it, give
   * `renewApproverSecret: true`, too, or call `edit` again with it alone: each such call makes another secret, and ends the
   * approver's earlier link.
   */
  async edit(id: string, changes: types.TaskChanges, options: types.CallOptions = {}): Promise<types.Task> {
    const { decisionBy, ...fields } = changes;
    const date = decisionBy === null ? { decisionBy } : dateField(decisionBy);
    const call: Call = { method: "PUT", path: taskPath(id), body: { ...fields, ...date } };
    // A repeat would be refused, because the version is another one.
    if (changes.version !== undefined) call.repeatable = false;
    return hideSecrets(checkTask(await this.#call<types.Task>(call, options)));
  }

  /** Approves a task. Throws the problem `task-already-resolved` if it has ended. */
  approve(id: string, options: types.DecideOptions = {}): Promise<types.Task> {
    return this.#decide("approved", id, options);
  }

  /** Rejects a task. Throws the problem `task-already-resolved` if it has ended. */
  reject(id: string, options: types.DecideOptions = {}): Promise<types.Task> {
    return this.#decide("rejected", id, options);
  }

  /** Withdraws a task. Throws the problem `task-already-resolved` if it has ended. Only webhooks that name `cancelled` hear of it. */
  async cancel(id: string, options: types.CancelOptions = {}): Promise<types.Task> {
    const body = { ...pick(options, "reason"), ...pick(options, "version") };
    const path = `${taskPath(id)}/cancel`;
    const outcome = await this.#try({ method: "POST", path, body, headers: secretHeader(options) }, options);
    return this.#settle(outcome, "cancelled", id, options, options.reason);
  }

  /** How many webhooks hear of a withdrawal, and how many do not. */
  cancelPreview(id: string, options: types.CallOptions = {}): Promise<types.CancelPreview> {
    return this.#call({ method: "GET", path: `${taskPath(id)}/cancel` }, options);
  }

  /** The tasks that you created, requested or are to approve, the newest first. It fetches pages as you go on. */
  tasks(options: types.ListOptions = {}): AsyncGenerator<types.Task, void, undefined> {
    return listTasks(this.#transport, options);
  }

  /** How many tasks `tasks` has. */
  async count(filters: types.TaskFilters = {}, options: types.CallOptions = {}): Promise<number> {
    const call: Call = { method: "GET", path: "/people-task/tasks-count", query: filterQuery(filters) };
    return (await this.#call<{ count: number }>(call, options)).count;
  }

  /**
   * Checks a webhook call, and returns what it says: with `secret` by its HMAC signature, and otherwise by this server's published
   * keys, which are fetched and kept.
   *
   * Throws a `VerificationError` if the call is not genuine. If the keys cannot be fetched it throws another error: answer `503`
   * then, and the call comes again.
   */
  verify<T = types.WebhookTask>(
    headers: HeadersLike,
    body: RawBody,
    options: { secret?: string | readonly string[]; tolerance?: number } = {},
  ): Promise<types.VerifiedCall<T>> {
    const { secret, ...rest } = options;
    if (secret !== undefined) return verify<T>(headers, body, { secret, ...rest });
    return verifyCall<T>(headers, body, "v1a", options.tolerance, (signed, signatures) => this.#keys.check(signed, signatures));
  }

  /** The link by which the approver opens the task without an account. It holds the approver's secret. */
  linkFor(task: Pick<types.CreatedTask, "id" | "approverSecret">): string {
    return `${this.url}/tasks?${new URLSearchParams({ id: task.id, secret: task.approverSecret })}`;
  }

  async #withdraw(id: string, late: DecisionTimeoutError, options: types.WaitOptions): Promise<types.Decision> {
    try {
      await this.cancel(id, { reason: "It was not decided in time.", ...pick(options, "signal") });
    } catch (error) {
      // It ended in the last moment.
      if (isResolved(error)) return this.wait(id, { ...options, timeout: 0 });
      throw error;
    }
    throw new DecisionTimeoutError(id, true, { cause: late.cause });
  }

  async #decide(status: "approved" | "rejected", id: string, options: types.DecideOptions): Promise<types.Task> {
    const body = { ...pick(options, "comment"), ...pick(options, "version") };
    const query = new URLSearchParams(options.override ? { override: "true" } : {});
    const path = `${taskPath(id)}/${status === "approved" ? "approve" : "reject"}`;
    const outcome = await this.#try({ method: "PUT", path, query, body, headers: secretHeader(options) }, options);
    return this.#settle(outcome, status, id, options, options.comment);
  }

  /** If the answer to an earlier attempt was lost, the task may have ended by it. */
  async #settle(
    outcome: Answer<types.Task> | Failure,
    status: types.TaskStatus,
    id: string,
    options: types.CallOptions & { secret?: string },
    comment = "",
  ): Promise<types.Task> {
    if (!(outcome instanceof Failure)) return checkTask(outcome.body);
    if (outcome.wasRepeated && isResolved(outcome.error) && outcome.error.problem["taskStatus"] === status) {
      const task = await this.get(id, { ...options, include: ["comment"] });
      if ((task.comment ?? "") === comment.trim()) return task;
    }
    throw outcome.error;
  }

  async #ownAddress(options: types.CallOptions): Promise<string> {
    if (this.#requester === undefined) {
      const user = await this.#call<{ email: string }>({ method: "GET", path: "/user" }, options).catch((error: unknown) => {
        if (!(error instanceof ProblemError) || error.code !== "insufficient-scope") throw error;
        const message = "Give `requester`, or a key that also has the scope `users:read`, to read its user's address.";
        throw new CountersignError("requester-missing", message, { cause: error });
      });
      this.#requester = user.email;
    }
    return this.#requester;
  }

  async #call<T>(call: Call, options: types.CallOptions): Promise<T> {
    return (await this.#transport.send<T>({ ...call, ...limits(options) })).body;
  }

  #try(call: Call, options: types.CallOptions): Promise<Answer<types.Task> | Failure> {
    return this.#transport.trySend<types.Task>({ ...call, ...limits(options) });
  }
}

function taskPath(id: string): string {
  return `${TASKS}/${checkId(id)}`;
}

/** What is no task, such as the JSON of a proxy, is no answer. */
function checkTask<T extends types.Task>(task: T): T {
  if (typeof task?.id === "string" && STATUSES.includes(task.status)) return task;
  throw new UnexpectedAnswerError("The answer is no task.", 200);
}

function isResolved(error: unknown): error is ProblemError {
  return error instanceof ProblemError && error.code === "task-already-resolved";
}

function secretHeader(options: { secret?: string }): Record<string, string> | undefined {
  if (options.secret === undefined) return undefined;
  if (!/^[\x21-\x7e]+$/.test(options.secret)) throw new TypeError("The secret of the task is invalid.");
  return { "x-task-secret": options.secret };
}

function dateField(date: string | Date | undefined): { decisionBy?: string } {
  if (date === undefined) return {};
  return { decisionBy: typeof date === "string" ? date : date.toISOString() };
}

/** The seconds until a due date; nothing without one, or for a text that the server has to judge. */
function secondsUntil(date: string | Date | null | undefined, serverTime: number): number | undefined {
  if (date === undefined || date === null) return undefined;
  const text = typeof date === "string" ? date.replace(/^(\d{4}-\d\d-\d\d) (\d\d:\d\d:\d\d)$/, "$1T$2Z") : date;
  const seconds = (new Date(text).getTime() - serverTime) / 1000;
  return Number.isFinite(seconds) ? Math.max(0, seconds) : undefined;
}
