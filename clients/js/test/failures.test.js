import assert from "node:assert/strict";
import { afterEach, beforeEach, test } from "node:test";
import { inspect } from "node:util";

import { ConnectionError, Countersign, DecisionTimeoutError, ProblemError, UnexpectedAnswerError } from "@countersign/client";

import { FakeServer, answer } from "./support/server.js";

let server;
let client;
const question = { title: "Ship order 4711", approver: "grace@example.com", requester: "ada@example.com" };
const create = /POST \/people-task\/tasks/;

beforeEach(async () => {
  server = await new FakeServer().start();
  client = new Countersign({ url: server.url, key: server.key, retryFor: 10 });
});
afterEach(() => server.stop());

test("a creation whose answers are lost makes one task", async () => {
  server.plan(create, "lose", "cut", answer(503, "overloaded"), "lose");
  const task = await client.create(question);
  assert.equal(server.tasks.size, 1);
  assert.ok(server.tasks.has(task.id));
  assert.equal(server.calls(create).length, 5);
  assert.equal(new Set(server.calls(create).map((call) => call.headers["idempotency-key"])).size, 1);
});

test("Retry-After is waited for", async () => {
  for (const [kind, ahead] of [["seconds", 0], ["date", 0], ["date", -300_000]]) {
    server.date = () => new Date(Date.now() + ahead).toUTCString();
    const date = new Date(Date.now() + ahead + 3000).toUTCString();
    server.requests.length = 0;
    server.plan(create, answer(429, "rate-limited", { "retry-after": kind === "seconds" ? "2" : date }));
    await client.create(question);
    const [first, second] = server.calls(create);
    const least = kind === "seconds" ? first.at + 2000 : Date.parse(date) - ahead;
    assert.ok(second.at >= least - 20 && second.at - least < 20_000, `${second.at - least} ms`);
  }
});

test("a request with the same key in progress is asked for again", async () => {
  server.plan(create, answer(409, "idempotency-key-in-use", { "retry-after": "1" }));
  await client.create(question);
  assert.equal(server.calls(create).length, 2);
});

test("an answer that takes too long is a failed attempt", async () => {
  server.plan(create, "hang");
  const impatient = new Countersign({ url: server.url, key: server.key, timeout: 2 });
  await impatient.create(question);
  assert.equal(server.calls(create).length, 2);
  server.plan(/GET/, "hang");
  const error = await impatient.get("a1", { retryFor: 0 }).catch((error) => error);
  assert.ok(error instanceof ConnectionError);
  assert.equal(error.code, "request-timeout");
});

test("an attempt may take longer than a timer can wait", async () => {
  const patient = new Countersign({ url: server.url, key: server.key, timeout: 365 * 24 * 3600 });
  server.plan(/GET/, (request, response) => {
    response.writeHead(200, { "content-type": "application/json" });
    setTimeout(() => response.end('{"id": "a1", "status": "pending"}'), 100);
  });
  assert.equal((await patient.get("a1", { retryFor: 0 })).id, "a1");
});

test("what cannot be JSON is refused at once", async () => {
  await assert.rejects(client.create({ ...question, metadata: { order: 4711n } }), TypeError);
  assert.equal(server.calls(create).length, 0);
});

test("a body that stops in the middle is a failed attempt", async () => {
  server.plan(create, (request, response) => {
    response.writeHead(200, { "content-type": "application/json", "content-length": "1000" });
    response.write('{"id":');
    setTimeout(() => request.socket.destroy(), 50);
  });
  await client.create(question);
  assert.equal(server.calls(create).length, 2);
});

test("calls end with the last error when the time for retries is over", async () => {
  server.plan(/GET/, ...Array(50).fill(answer(503, "database-unavailable")));
  const begun = Date.now();
  const error = await client.get("a1", { retryFor: 3 }).catch((error) => error);
  assert.ok(error instanceof ProblemError);
  assert.deepEqual([error.code, error.status, error.requestId], ["database-unavailable", 503, "r1"]);
  assert.ok(Date.now() - begun < 10_000);
  assert.ok(server.requests.length >= 2 && server.requests.length < 12, `${server.requests.length} calls`);
});

test("refusals are not repeated", async () => {
  for (const [status, code] of [[400, "validation-failed"], [401, "invalid-key"], [403, "forbidden"], [404, "not-found"], [409, "quota-exceeded"]]) {
    server.requests.length = 0;
    server.plan(create, answer(status, code));
    await assert.rejects(client.create(question), { code, status });
    assert.equal(server.requests.length, 1, code);
  }
});

test("a server that is down at the beginning is waited for", async () => {
  await server.stop();
  const asked = client.ask(question);
  setTimeout(() => server.start(), 700);
  await server.until(() => server.tasks.size === 1);
  server.end([...server.tasks.keys()][0], "approved");
  assert.equal((await asked).status, "approved");
});

test("a wait goes on through a restart, and finds what was decided meanwhile", async () => {
  const asked = client.ask(question);
  await server.until(() => server.calls(/wait=/).length === 1);
  await server.stop();
  server.end([...server.tasks.keys()][0], "approved", "While it was down.");
  await server.start();
  assert.equal((await asked).comment, "While it was down.");
  assert.equal(server.tasks.size, 1);
});

test("a wait goes on after errors of proxies and limits", async () => {
  const page = { status: 502, body: "<html>Bad gateway</html>", headers: { "content-type": "text/html" } };
  server.plan(/wait=/, page, answer(504, "upstream-timeout"), "cut", answer(429, "rate-limited", { "retry-after": "1" }), answer(500, "internal-error"));
  const asked = client.ask(question);
  await server.until(() => server.calls(/wait=/).length === 6, "the sixth call", 20);
  server.end([...server.tasks.keys()][0], "approved");
  assert.equal((await asked).status, "approved");
});

test("a page in place of an answer is no decision, and ends no wait", async () => {
  const page = { status: 200, body: "<html>starting up</html>", headers: { "content-type": "text/html" } };
  const cut = { status: 200, body: "{", headers: { "content-type": "application/json" } };
  server.plan(create, page);
  server.plan(/wait=/, page, cut);
  const asked = client.ask(question);
  await server.until(() => server.calls(/wait=/).length === 3);
  assert.equal(server.tasks.size, 1);
  server.end([...server.tasks.keys()][0], "approved");
  assert.equal((await asked).status, "approved");
  server.plan(/\/test/, page);
  await assert.rejects(client.webhooks.test("b1"), UnexpectedAnswerError);
  assert.equal(server.calls(/\/test/).length, 1, "it may have been made");
});

test("a wait goes on after the page of a proxy that knows no server", async () => {
  server.plan(/wait=/, { status: 404, body: "404 page not found", headers: { "content-type": "text/plain" } });
  const asked = client.ask(question);
  await server.until(() => server.calls(/wait=/).length === 2);
  server.end([...server.tasks.keys()][0], "approved");
  assert.equal((await asked).status, "approved");
});

test("an edit whose answer is lost is repeated as it is, and not at all with a version", async () => {
  const task = await client.create(question);
  const bodies = [];
  for (const changes of [{ title: "Another", approver: task.approver }, { approver: "linus@example.com", renewApproverSecret: true }]) {
    server.plan(/PUT/, "lose");
    await client.edit(task.id, changes);
    bodies.push(changes, changes);
  }
  assert.deepEqual(server.calls(/PUT/).map((call) => call.body), bodies);
  server.plan(/PUT/, "lose");
  await assert.rejects(client.edit(task.id, { title: "A third", version: 2 }), { code: "connection-failed" });
  assert.equal(server.calls(/PUT/).length, 5);
});

test("JSON that is no task is no answer either", async () => {
  const json = (body) => ({ status: 200, body, headers: { "content-type": "application/json" } });
  const task = await client.create(question);
  server.plan(/PUT/, json("{}"));
  await assert.rejects(client.approve(task.id), { code: "unexpected-answer" });
  server.tasks.clear();
  server.plan(/wait=/, json('{"status":"ok"}'), json("null"));
  const asked = client.ask(question);
  await server.until(() => server.calls(/wait=/).length === 3);
  server.end([...server.tasks.keys()][0], "rejected");
  await assert.rejects(asked, { code: "rejected" });
});

test("a server that answers at once is not asked without pause", async () => {
  const pending = (_, response) => {
    response.writeHead(200, { "content-type": "application/json" });
    response.end(JSON.stringify({ id: "a1", status: "pending" }));
  };
  server.plan(/wait=/, ...Array(500).fill(pending));
  await assert.rejects(client.wait("a1", { timeout: 3 }), DecisionTimeoutError);
  assert.ok(server.requests.length >= 2 && server.requests.length <= 12, `${server.requests.length} calls`);
});

test("a wait ends when the key is revoked", async () => {
  const asked = client.ask(question);
  await server.until(() => server.calls(/wait=/).length === 1);
  server.key = "csk_another";
  server.end([...server.tasks.keys()][0], "approved");
  await assert.rejects(asked, { code: "invalid-key", status: 401 });
});

test("the end of the time comes also while the server is down, and says why", async () => {
  const task = await client.create(question);
  await server.stop();
  const error = await client.wait(task.id, { timeout: 0.8 }).catch((error) => error);
  assert.ok(error instanceof DecisionTimeoutError);
  assert.equal(error.cause.code, "connection-failed");
  await server.start();
});

test("a redirect is not followed", async () => {
  const thief = await new FakeServer().start();
  server.plan(/GET/, { status: 307, headers: { location: `${thief.url}/people-task/tasks/a1` } });
  await assert.rejects(client.get("a1"), { code: "unexpected-answer", status: 307 });
  assert.equal(thief.requests.length, 0);
  await thief.stop();
});

test("what is no answer of Countersign is an error, and no decision", async () => {
  server.plan(/GET/, { status: 404, body: "{}", headers: { "content-type": "application/json" } });
  const error = await client.get("a1").catch((error) => error);
  assert.ok(error instanceof UnexpectedAnswerError, inspect(error));
  server.plan(/GET/, (_, response) => {
    response.writeHead(200, { "content-type": "application/json" });
    const part = Buffer.alloc(1024 * 1024, " ");
    const write = () => {
      while (!response.destroyed && response.write(part));
      if (!response.destroyed) response.once("drain", write);
    };
    write();
  });
  await assert.rejects(client.get("a1", { retryFor: 0 }), { message: "The answer is too long." });
});

test("the user agent names the program and this package", async () => {
  const named = new Countersign({ url: server.url, key: server.key, userAgent: "shop/2.1" });
  await named.count();
  assert.match(server.requests[0].headers["user-agent"], /^shop\/2\.1 countersign-js\/\d+\.\d+\.\d+$/);
});
