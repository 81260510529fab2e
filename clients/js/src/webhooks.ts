import { checkId, checkIdempotencyKey, limits } from "./checks.js";
import { ProblemError } from "./errors.js";
import { listRows } from "./lists.js";
import { type Call, Failure, type Transport } from "./transport.js";
import type { CallOptions, CreateOptions, Delivery, NewWebhook, Webhook, WebhookTest } from "./types.js";
import { randomKey } from "./signatures.js";

const WEBHOOKS = "/people-task/webhooks";

/** The webhooks of tasks. */
export class Webhooks {
  readonly #transport: Transport;

  constructor(transport: Transport) {
    this.#transport = transport;
  }

  /** Registers a webhook for a pending task. Repeats after failures make no second one. */
  register(taskId: string, webhook: NewWebhook, options: CreateOptions = {}): Promise<Webhook> {
    const headers = { "idempotency-key": checkIdempotencyKey(options.idempotencyKey ?? randomKey()) };
    return this.#call({ method: "POST", path: WEBHOOKS, headers, body: { ...webhook, taskId: checkId(taskId) } }, options);
  }

  /** Calls a webhook once with the status `test`, and says what the receiver answered. */
  test(id: string, options: CallOptions = {}): Promise<WebhookTest> {
    const timeout = options.timeout ?? this.#transport.timeout + 10;
    const call: Call = { method: "POST", path: `${WEBHOOKS}/${checkId(id)}/test`, repeatable: false };
    return this.#call(call, { ...options, timeout });
  }

  /** Deletes a webhook. */
  async delete(id: string, options: CallOptions = {}): Promise<void> {
    const outcome = await this.#transport.trySend({ method: "DELETE", path: `${WEBHOOKS}/${checkId(id)}`, ...limits(options) });
    if (!(outcome instanceof Failure)) return;
    // The answer to an earlier attempt may have been lost.
    const isGone = outcome.error instanceof ProblemError && outcome.error.status === 404;
    if (!(isGone && outcome.wasRepeated)) throw outcome.error;
  }

  /** The webhooks of a task. */
  list(taskId: string, options: CallOptions = {}): Promise<Webhook[]> {
    return this.#call({ method: "GET", path: `/people-task/tasks/${checkId(taskId)}/webhooks` }, options);
  }

  /** The calls of a task's webhooks, with their attempts. It fetches all pages. */
  async deliveries(taskId: string, options: CallOptions = {}): Promise<Delivery[]> {
    const path = `/people-task/tasks/${checkId(taskId)}/deliveries`;
    const call: Call = { method: "GET", path, query: new URLSearchParams({ limit: "100" }), ...limits(options) };
    const deliveries: Delivery[] = [];
    for await (const delivery of listRows<Delivery>(this.#transport, call)) deliveries.push(delivery);
    return deliveries;
  }

  /** Sends a call again. */
  async redeliver(deliveryId: string, options: CallOptions = {}): Promise<void> {
    const path = `/people-task/deliveries/${checkId(deliveryId)}/redeliver`;
    await this.#call({ method: "POST", path, repeatable: false }, options);
  }

  async #call<T>(call: Call, options: CallOptions): Promise<T> {
    return (await this.#transport.send<T>({ ...call, ...limits(options) })).body;
  }
}
