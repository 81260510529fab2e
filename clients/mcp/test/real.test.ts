import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import { createServer, type Server, type Socket, connect } from "node:net";
import type { AddressInfo } from "node:net";
import { after, before, describe, test } from "node:test";

import { Session } from "./session.ts";

const { BASE = "", ADMIN_USER, ADMIN_PASSWORD } = process.env;

type Fields = Record<string, unknown>;

async function api(method: string, path: string, token?: string, body?: Fields): Promise<Fields> {
  const headers = { "Content-Type": "application/json", ...(token ? { Authorization: `Bearer ${token}` } : {}) };
  const response = await fetch(BASE + path, { method, headers, body: body ? JSON.stringify(body) : null });
  const result = (await response.json()) as Fields;
  assert.ok(response.ok, `${method} ${path}: ${response.status} ${result.code} ${result.detail}`);
  return result;
}

async function signIn(username: string, password: string): Promise<string> {
  return String((await api("POST", "/user/auth", undefined, { username, password })).token);
}

/** A TCP proxy whose connections can be cut. */
class Cable {
  private sockets = new Set<Socket>();
  private server: Server | undefined;
  private port = 0;

  get url(): string {
    return `http://127.0.0.1:${this.port}`;
  }

  async plugIn(): Promise<this> {
    const { hostname, port } = new URL(BASE);
    this.server = createServer((client) => {
      const upstream = connect(Number(port || 80), hostname);
      for (const [from, to] of [[client, upstream], [upstream, client]] as const) {
        this.sockets.add(from);
        from.on("error", () => to.destroy());
        from.on("close", () => to.destroy());
        from.pipe(to);
      }
    });
    await new Promise<void>((resolve) => this.server?.listen(this.port, "127.0.0.1", resolve));
    this.port = (this.server.address() as AddressInfo).port;
    return this;
  }

  async cut(): Promise<void> {
    for (const socket of this.sockets) socket.destroy();
    this.sockets.clear();
    await new Promise((resolve) => this.server?.close(resolve));
  }

  get isUsed(): boolean {
    return [...this.sockets].some((socket) => !socket.destroyed);
  }
}

describe("with a real Countersign", { skip: !BASE && "set BASE, ADMIN_USER and ADMIN_PASSWORD" }, () => {
  const name = `mcp-${randomBytes(6).toString("hex")}`;
  const [asks, decides] = [`${name}-asks@example.com`, `${name}-decides@example.com`];
  let asksToken: string;
  let decidesToken: string;
  let cable: Cable;
  let session: Session;
  let key: Fields;

  async function makeKey(scopes: string[]): Promise<Fields> {
    return api("POST", "/user/keys", asksToken, { name: "Agent", scopes });
  }

  const open = (made: Fields) => Session.open({ COUNTERSIGN_URL: cable.url, COUNTERSIGN_KEY: String(made.key) });
  const decide = (id: unknown, verb: string, comment: string) => api("PUT", `/people-task/tasks/${id}/${verb}`, decidesToken, { comment });

  async function ask(more: Fields = {}): Promise<Fields> {
    const { approval, text } = await session.call("request_approval", { title: "Buy a chair", approver: decides, ...more });
    assert.equal(approval.status, "pending", text);
    return approval;
  }

  before(async () => {
    const admin = await signIn(ADMIN_USER ?? "", ADMIN_PASSWORD ?? "");
    const password = randomBytes(12).toString("hex");
    for (const email of [asks, decides]) await api("POST", "/user", admin, { email, password });
    asksToken = await signIn(asks, password);
    decidesToken = await signIn(decides, password);
    cable = await new Cable().plugIn();
    key = await makeKey(["tasks:read", "tasks:write", "users:read"]);
    session = await open(key);
  });

  after(async () => {
    await session.close();
    await cable.cut();
    assert.ok(!session.heard.includes(String(key.key)));
    assert.doesNotMatch(session.heard, /secret|[0-9a-f]{64}/i);
  });

  for (const [verb, status] of [["approve", "approved"], ["reject", "rejected"]] as const) {
    test(`${status} with a comment`, async () => {
      const { id, requester } = await ask();
      assert.equal(requester, asks);
      const waiting = session.call("wait_for_approval", { id });
      await decide(id, verb, "Because.");
      const { approval } = await waiting;
      assert.deepEqual([approval.status, approval.comment, approval.decided_by], [status, "Because.", decides]);
      assert.ok(approval.decided_at);
    });
  }

  test("waiting survives a cut of the network", async () => {
    const { id } = await ask();
    const waiting = session.call("wait_for_approval", { id, timeout_seconds: 60 });
    while (!cable.isUsed) await new Promise((resolve) => setTimeout(resolve, 20));
    await cable.cut();
    await decide(id, "approve", "Meanwhile.");
    await cable.plugIn();
    assert.equal((await waiting).approval.comment, "Meanwhile.");
  });

  test("a date that has passed is told", async () => {
    const { id } = await ask({ decision_by: "2020-01-01T00:00:00Z" });
    const { approval } = await session.call("check_approval", { id });
    assert.deepEqual([approval.status, approval.decision_by], ["pending", "2020-01-01 00:00:00"]);
    assert.match(String(approval.next), /has passed/);
  });

  test("withdrawn with a reason, also a second time", async () => {
    const { id } = await ask();
    for (const reason of ["Bought already.", "Again."]) {
      const { approval } = await session.call("cancel_approval", { id, reason });
      assert.deepEqual([approval.status, approval.comment], ["cancelled", "Bought already."]);
    }
  });

  test("the same idempotency key asks once", async () => {
    const idempotency_key = randomBytes(8).toString("hex");
    assert.equal((await ask({ idempotency_key })).id, (await ask({ idempotency_key })).id);
    const { text } = await session.call("request_approval", { title: "Another", approver: decides, idempotency_key });
    assert.match(text, /^idempotency-key-reused: /);
  });

  test("the page of a request asks to sign in", async () => {
    const { page } = await ask();
    const response = await fetch(String(page));
    assert.equal(response.status, 200);
    assert.match(String(page), /\/tasks\?id=[0-9a-f]{24}$/);
  });

  test("a key that may decide is refused", async () => {
    for (const scopes of [["tasks:read", "tasks:write", "tasks:decide", "users:read"]]) {
      const other = await open(await makeKey(scopes));
      const { isError, text } = await other.call("request_approval", { title: "Buy a chair", approver: decides });
      await other.close();
      assert.equal(isError, true);
      assert.match(text, /^key-decides: /);
    }
  });

  test("a revoked key is told, without the key", async () => {
    const revoked = await makeKey(["tasks:read", "tasks:write", "users:read"]);
    const other = await open(revoked);
    const { approval } = await other.call("request_approval", { title: "Buy a chair", approver: decides });
    await api("DELETE", `/user/keys/${revoked.id}`, asksToken);
    let result = await other.call("check_approval", { id: approval.id });
    // Other processes learn of it within seconds.
    for (const end = Date.now() + 30_000; !result.isError && Date.now() < end; ) {
      result = await other.call("check_approval", { id: approval.id });
    }
    await other.close();
    assert.match(result.text, /^invalid-key: /);
    assert.ok(!other.heard.includes(String(revoked.key)));
  });

  test("the version is that of the API", async () => {
    const { info } = (await api("GET", "/openapi.json")) as { info: { version: string } };
    assert.equal(session.client.getServerVersion()?.version, info.version);
  });
});
