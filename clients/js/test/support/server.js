// A small Countersign for tests, over real HTTP, whose answers can be made to fail.
import { randomBytes, generateKeyPairSync } from "node:crypto";
import { createServer } from "node:http";

const hex = (bytes) => randomBytes(bytes).toString("hex");

export class FakeServer {
  tasks = new Map();
  requests = [];
  keys = [];
  /** The key that callers need. */
  key = "csk_test";
  /** The header `Date` of the next answers. */
  date = () => new Date().toUTCString();
  scopes = ["tasks:read", "tasks:write", "tasks:decide", "users:read"];
  #plans = [];
  #answers = new Map();
  #waiting = new Set();
  #sockets = new Set();
  #server;
  #port = 0;

  get url() {
    return `http://127.0.0.1:${this.#port}`;
  }

  /** Starts it, the second time at the same port. */
  async start() {
    this.#server = createServer((request, response) => void this.#serve(request, response));
    this.#server.on("connection", (socket) => {
      this.#sockets.add(socket);
      socket.on("close", () => this.#sockets.delete(socket));
    });
    await new Promise((resolve) => this.#server.listen(this.#port, "127.0.0.1", resolve));
    this.#port = this.#server.address().port;
    return this;
  }

  /** Cuts all connections, and refuses new ones. */
  async stop() {
    const closed = new Promise((resolve) => this.#server.close(resolve));
    for (const socket of this.#sockets) socket.destroy();
    for (const wake of this.#waiting) wake();
    await closed;
  }

  /** Plans what happens to the next calls that match: each gets one of these. */
  plan(match, ...plans) {
    this.#plans.push(...plans.map((plan) => ({ match, plan })));
  }

  /** Forgets the plans that are left. */
  plansEnd() {
    this.#plans.length = 0;
  }

  /** The calls so far that match. */
  calls(match) {
    return this.requests.filter((request) => request.line.match(match));
  }

  /** Resolves when the condition holds. */
  async until(condition, what = "the condition", seconds = 10) {
    for (const end = Date.now() + seconds * 1000; Date.now() < end; ) {
      if (await condition()) return;
      await new Promise((resolve) => setTimeout(resolve, 10));
    }
    throw new Error(`${what} did not come true within ${seconds} s`);
  }

  /** Ends a task. */
  end(id, status, comment = null, decidedBy = "grace@example.com") {
    const task = this.tasks.get(id);
    if (task.status !== "pending") return false;
    Object.assign(task, { status, comment, decidedBy, decisionMade: new Date().toISOString(), decidedVia: { type: "token" } });
    for (const wake of this.#waiting) wake();
    return true;
  }

  /** A new key that signs webhook calls, and is published. */
  addKey() {
    const { publicKey, privateKey } = generateKeyPairSync("ed25519");
    this.keys.push({ ...publicKey.export({ format: "jwk" }), alg: "EdDSA", use: "sig", kid: hex(8) });
    return privateKey;
  }

  async #serve(request, response) {
    const line = `${request.method} ${request.url}`;
    const { headers } = request;
    response.sendDate = false;
    let text = "";
    request.on("error", () => {});
    for await (const part of request.setEncoding("utf8")) text += part;
    const entry = { line, headers, body: text === "" ? undefined : JSON.parse(text), at: Date.now() };
    this.requests.push(entry);
    const date = this.date();
    if (date !== undefined) response.setHeader("date", date);
    const index = this.#plans.findIndex(({ match }) => line.match(match));
    const plan = index < 0 ? undefined : this.#plans.splice(index, 1)[0].plan;
    if (plan === "cut") return request.socket.destroy();
    if (plan === "hang") return;
    if (typeof plan === "function") return plan(request, response);
    if (plan?.status) return send(response, plan.status, plan.body ?? "", plan.headers);
    let answer;
    try {
      answer = await this.#answer(new URL(request.url, this.url), entry, request);
    } catch (problem) {
      if (!problem.status) throw problem;
      answer = problem;
    }
    if (plan === "lose") return request.socket.destroy();
    send(response, answer.status ?? 200, JSON.stringify(answer.body), { "content-type": answer.type ?? "application/json", ...answer.headers });
  }

  async #answer(url, { line, headers, body }, request) {
    const path = `${request.method} ${url.pathname}`;
    if (path === "GET /.well-known/webhook-keys.json") return { body: { keys: this.keys } };
    if (headers.authorization !== `Bearer ${this.key}` && !headers["x-task-secret"]) throw problem(401, "invalid-key");
    const need = (scope) => {
      if (!this.scopes.includes(scope)) throw problem(403, "insufficient-scope");
    };
    if (path === "GET /user") {
      need("users:read");
      return { body: { id: hex(12), email: "flows@example.com" } };
    }
    if (path === "POST /people-task/tasks") return this.#repeatable(headers, body, () => this.#create(body));
    if (path === "POST /people-task/webhooks") {
      return this.#repeatable(headers, body, () => ({ id: hex(12), url: body.url, taskId: body.taskId, status: "pending" }));
    }
    if (path === "GET /people-task/tasks") return this.#list(url);
    if (path === "GET /people-task/tasks-count") return { body: { count: this.tasks.size } };
    const webhook = path.match(/^(DELETE|POST) \/people-task\/webhooks\/(\w+)(\/test)?$/);
    if (webhook) return webhook[1] === "DELETE" ? this.#deleteWebhook(webhook[2]) : { body: { id: hex(12), success: true, statusCode: 200, error: null, at: "", durationMs: 1 } };
    const [, , id, action] = url.pathname.match(/^\/people-task\/(tasks)\/(\w+)(?:\/(\w+))?$/) ?? [];
    const task = this.tasks.get(id);
    if (!task) throw problem(404, "not-found");
    if (action === "deliveries") return this.#deliveries(url, task);
    if (action === undefined && request.method === "GET") return this.#get(task, url, request);
    if (action === undefined && request.method === "PUT") return { body: shown(Object.assign(task, body, { version: task.version + 1 })) };
    if (action === "approve" || action === "reject") {
      need("tasks:decide");
      return this.#decide(task, action === "approve" ? "approved" : "rejected", body?.comment ?? null);
    }
    if (action === "cancel") return this.#decide(task, "cancelled", body?.reason ?? null, "flows@example.com");
    throw problem(404, `unknown-route`, line);
  }

  deletedWebhooks = new Set();
  #deleteWebhook(id) {
    if (this.deletedWebhooks.has(id)) throw problem(404, "not-found");
    this.deletedWebhooks.add(id);
    return { body: {} };
  }

  #repeatable(headers, body, make) {
    const key = headers["idempotency-key"];
    const known = this.#answers.get(key);
    if (known && known.body !== JSON.stringify(body)) throw problem(422, "idempotency-key-reused");
    if (known) return { body: known.answer, headers: { "idempotent-replayed": "true" } };
    const answer = make();
    this.#answers.set(key, { body: JSON.stringify(body), answer });
    return { body: answer };
  }

  #create({ webhooks, ...fields }) {
    const { title, requester, approver, description = "", decisionBy = null, ...rest } = fields;
    const date = decisionBy && new Date(decisionBy).toISOString().slice(0, 19).replace("T", " ");
    const task = { id: hex(12), title, requester, approver, description, decisionBy: date, status: "pending", ...rest };
    Object.assign(task, { comment: null, decidedBy: null, decisionMade: null, decidedVia: null, version: 1 });
    this.tasks.set(task.id, task);
    return { ...shown(task), public: false, approverSecret: hex(32), requesterSecret: hex(32), ...(webhooks && { webhooks: [] }) };
  }

  async #get(task, url, request) {
    const seconds = Number(url.searchParams.get("wait") ?? 0);
    const include = (url.searchParams.get("include") ?? "").split(",");
    if (seconds > 0 && task.status === "pending") {
      await new Promise((resolve) => {
        const timer = setTimeout(done, seconds * 1000);
        const wake = () => this.tasks.get(task.id).status !== "pending" && done();
        const waiting = this.#waiting;
        function done() {
          clearTimeout(timer);
          waiting.delete(wake);
          resolve();
        }
        waiting.add(wake);
        request.socket.once("close", done);
      });
      if (request.headers.authorization !== `Bearer ${this.key}`) throw problem(401, "invalid-key");
    }
    return { body: { ...shown(task), ...Object.fromEntries(include.filter(Boolean).map((name) => [name, task[name] ?? null])) } };
  }

  #decide(task, status, comment, by) {
    if (!this.end(task.id, status, comment, by)) {
      throw problem(409, "task-already-resolved", "The task has ended.", { taskStatus: task.status });
    }
    return { body: shown(task) };
  }

  #list(url) {
    return pageOf([...this.tasks.values()].reverse().map(shown), url);
  }

  /** The deliveries of tasks, by their ids. */
  deliveries = new Map();
  #deliveries(url, { id }) {
    return pageOf(this.deliveries.get(id) ?? [], url);
  }
}

function pageOf(all, url) {
  const [limit, offset] = [["limit", 100], ["offset", 0]].map(([name, by]) => Number(url.searchParams.get(name) ?? by));
  const next = new URLSearchParams(url.searchParams);
  next.set("offset", String(offset + limit));
  const link = offset + limit < all.length ? { link: `<${url.pathname}?${next}>; rel="next"` } : {};
  return { body: all.slice(offset, offset + limit), headers: link };
}

const DEFAULT = ["id", "approver", "requester", "title", "description", "decisionBy", "status"];
const shown = (task) => Object.fromEntries(DEFAULT.map((name) => [name, task[name]]));

export function problem(status, code, detail = "It was refused.", more = {}, headers = {}) {
  const body = { type: `urn:countersign:problem:${code}`, title: code, status, detail, code, message: detail, statusCode: status, error: "", requestId: "r1", ...more };
  return { status, body, type: "application/problem+json", headers };
}

/** A plan that answers with a problem. */
export function answer(status, code, headers = {}) {
  const { body } = problem(status, code);
  return { status, body: JSON.stringify(body), headers: { "content-type": "application/problem+json", ...headers } };
}

function send(response, status, body, headers = {}) {
  if (response.destroyed) return;
  response.writeHead(status, headers);
  response.end(body);
}
