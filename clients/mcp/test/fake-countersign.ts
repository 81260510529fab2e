import { randomBytes } from "node:crypto";
import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";

type Fields = Record<string, unknown>;

/** What happens to a request instead of, or beside, its processing. A number is the status of a proxy's page. */
export type Fault = "lose-request" | "lose-response" | "unavailable" | "page" | number;

/** A key that may create and read, and one that may also decide. */
export const KEY = `csk_${"1".repeat(24)}${"a".repeat(36)}`;
export const DECIDING_KEY = `csk_${"2".repeat(24)}${"b".repeat(36)}`;

/**
 * The parts of Countersign's API that the tools call, over real HTTP and with faults on demand. It stands in where a test
 * needs to lose exactly one response; `real.test.ts` has the tests with a real Countersign.
 */
export class FakeCountersign {
  tasks = new Map<string, Fields>();
  /** Every request as `METHOD path`. */
  requests: string[] = [];
  faults: Fault[] = [];
  revoked = new Set<string>();
  abandoned = 0;
  /** Whether callers that wait are answered at once. */
  isBusy = false;
  /** How much its clock is ahead, in milliseconds. */
  ahead = 0;
  private made = new Map<string, Fields>();
  private waiting = new Set<() => void>();
  private server: Server | undefined;
  private port = 0;

  get url(): string {
    return `http://127.0.0.1:${this.port}`;
  }

  async start(): Promise<this> {
    this.server = createServer((request, response) => {
      this.respond(request, response).catch(() => response.destroy());
    });
    await new Promise<void>((resolve) => this.server?.listen(this.port, "127.0.0.1", resolve));
    this.port = (this.server.address() as AddressInfo).port;
    return this;
  }

  /** Cuts every connection and listens no more. The tasks stay. */
  async stop(): Promise<void> {
    const server = this.server;
    server?.closeAllConnections();
    await new Promise((resolve) => server?.close(resolve));
  }

  /** Decides or withdraws a task, and answers those who wait. */
  end(id: string, status: string, comment: string | null = null): void {
    const fields = { status, comment, decidedBy: "grace@example.com", decisionMade: "2026-01-02T03:04:05.000Z" };
    Object.assign(this.tasks.get(id) ?? {}, fields);
    for (const wake of this.waiting) wake();
  }

  async until(condition: () => boolean): Promise<void> {
    const end = Date.now() + 20_000;
    while (!condition()) {
      if (Date.now() > end) throw new Error("the condition did not become true within 20 seconds");
      await new Promise((resolve) => setTimeout(resolve, 20));
    }
  }

  private async respond(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const url = new URL(request.url ?? "/", this.url);
    const chunks: Buffer[] = [];
    for await (const chunk of request) chunks.push(chunk as Buffer);
    this.requests.push(`${request.method} ${url.pathname}`);
    response.setHeader("Date", new Date(Date.now() + this.ahead).toUTCString());
    const fault = this.faults.shift();
    if (fault === "lose-request") return void request.socket.destroy();
    if (fault === "unavailable") return send(response, 503, problem(503, "unavailable"), { "Retry-After": "1" });
    if (typeof fault === "number") return void response.writeHead(fault).end("<html>A proxy</html>");
    if (fault === "page") return void response.end("<html>starting</html>");
    const body = chunks.length > 0 ? (JSON.parse(Buffer.concat(chunks).toString()) as Fields) : {};
    const [status, content] = await this.process(request, response, url, body);
    if (fault === "lose-response") return void request.socket.destroy();
    send(response, status, content);
  }

  private async process(request: IncomingMessage, response: ServerResponse, url: URL, body: Fields): Promise<[number, Fields]> {
    const key = (request.headers.authorization ?? "").replace("Bearer ", "");
    const isKnown = [KEY, DECIDING_KEY].includes(key) && !this.revoked.has(key);
    // A careless server could repeat the key; the tools must not.
    if (!isKnown) return [401, problem(401, "invalid-key", `The key ${key} is invalid.`)];
    const [, id = "", verb] = /^\/people-task\/tasks\/([0-9a-f]{24})(?:\/(\w+))?$/.exec(url.pathname) ?? [];
    if (url.pathname === "/user") return [200, { id: "1", email: "ada@example.com" }];
    if (verb === "approve") {
      return key === DECIDING_KEY ? [404, problem(404, "not-found")] : [403, problem(403, "insufficient-scope")];
    }
    if (url.pathname === "/people-task/tasks") return this.create(body, String(request.headers["idempotency-key"]));
    const task = this.tasks.get(id);
    if (!task) return [404, problem(404, "not-found")];
    if (verb === "cancel") {
      if (task.status !== "pending") return [409, problem(409, "task-already-resolved")];
      this.end(id, "cancelled", typeof body.reason === "string" ? body.reason : null);
    }
    await this.wait(response, task, Number(url.searchParams.get("wait") ?? 0));
    return this.revoked.has(key) ? [401, problem(401, "invalid-key", `The key ${key} is invalid.`)] : [200, task];
  }

  private create(body: Fields, idempotencyKey: string): [number, Fields] {
    const made = this.made.get(idempotencyKey);
    if (made) return [200, made];
    if (body.title === "Invalid") {
      const errors = [{ field: "approver", code: "invalid-email", message: "Must be an address." }];
      return [400, { ...problem(400, "validation-failed"), errors }];
    }
    const id = randomBytes(12).toString("hex");
    const task = { description: "", decisionBy: null, ...body, id, status: "pending", comment: null, decidedBy: null, decisionMade: null };
    this.tasks.set(id, task);
    const secrets = { approverSecret: randomBytes(32).toString("hex"), requesterSecret: randomBytes(32).toString("hex") };
    this.made.set(idempotencyKey, { ...task, ...secrets });
    return [200, { ...task, ...secrets }];
  }

  /** Every secret that a response has had. */
  get secrets(): string[] {
    return [...this.made.values()].flatMap((task) => [String(task.approverSecret), String(task.requesterSecret)]);
  }

  private async wait(response: ServerResponse, task: Fields, seconds: number): Promise<void> {
    if (seconds === 0 || this.isBusy || task.status !== "pending") return;
    await new Promise<void>((resolve) => {
      const wake = () => {
        if (task.status === "pending" && !response.destroyed) return;
        done();
      };
      const done = () => {
        clearTimeout(timer);
        this.waiting.delete(wake);
        resolve();
      };
      const timer = setTimeout(done, seconds * 1000);
      this.waiting.add(wake);
      response.on("close", () => {
        if (!response.writableEnded) this.abandoned += 1;
        done();
      });
    });
  }
}

function problem(status: number, code: string, detail = code): Fields {
  return { type: `urn:countersign:problem:${code}`, title: code, status, detail, code };
}

function send(response: ServerResponse, status: number, content: Fields, headers: Record<string, string> = {}): void {
  if (response.destroyed) return;
  response.writeHead(status, { "Content-Type": "application/json", ...headers });
  response.end(JSON.stringify(content));
}
