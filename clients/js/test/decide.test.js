import assert from "node:assert/strict";
import { afterEach, beforeEach, test } from "node:test";

import { Countersign } from "@countersign/client";

import { FakeServer, answer } from "./support/server.js";

let server;
let client;
let id;
const question = { title: "Ship order 4711", approver: "grace@example.com", requester: "ada@example.com" };

beforeEach(async () => {
  server = await new FakeServer().start();
  client = new Countersign({ url: server.url, key: server.key });
  id = (await client.create(question)).id;
});
afterEach(() => server.stop());

test("a task is approved, rejected and withdrawn with what is said about it", async () => {
  await client.approve(id, { comment: "Fine.", version: 1, override: true });
  const [call] = server.calls(/approve/);
  assert.equal(call.line, `PUT /people-task/tasks/${id}/approve?override=true`);
  assert.deepEqual(call.body, { comment: "Fine.", version: 1 });
  await assert.rejects(client.reject(id), (error) => error.code === "task-already-resolved" && error.problem.taskStatus === "approved");
  const second = await client.create(question);
  await client.reject(second.id, { comment: "No." });
  assert.equal((await client.wait(second.id)).comment, "No.");
  const third = await client.create(question);
  await client.cancel(third.id, { reason: "Shipped already." });
  assert.equal((await client.wait(third.id)).comment, "Shipped already.");
});

test("a decision by the secret of a link needs no key", async () => {
  const visitor = new Countersign({ url: server.url });
  await visitor.approve(id, { secret: "ab12" });
  const [call] = server.calls(/approve/);
  assert.equal(call.headers["x-task-secret"], "ab12");
  assert.equal(call.headers.authorization, undefined);
});

test("a decision whose answer was lost is not taken for another one's", async () => {
  server.plan(/approve/, "lose");
  const task = await client.approve(id, { comment: " Fine. ".trim() });
  assert.equal(task.status, "approved");
  const second = await client.create(question);
  server.plan(/reject/, "lose");
  assert.equal((await client.reject(second.id)).status, "rejected");
  const third = await client.create(question);
  server.plan(/cancel/, "lose");
  assert.equal((await client.cancel(third.id, { reason: "Late." })).status, "cancelled");
});

test("a decision that was committed when the database was lost is not taken for another one's", async () => {
  const { status, body, headers } = answer(503, "database-unavailable", { "retry-after": "0" });
  server.plan(/approve/, (_, response) => {
    server.end(id, "approved", "Fine.");
    response.writeHead(status, headers).end(body);
  });
  assert.equal((await client.approve(id, { comment: "Fine." })).status, "approved");
});

test("another one's decision is an error, also after a lost attempt", async () => {
  server.plan(/approve/, (request) => {
    server.end(id, "rejected", "No.");
    request.socket.destroy();
  });
  await assert.rejects(client.approve(id), { code: "task-already-resolved" });
  const second = await client.create(question);
  server.plan(/approve/, (request) => {
    server.end(second.id, "approved", "By another person.");
    request.socket.destroy();
  });
  await assert.rejects(client.approve(second.id, { comment: "Mine." }), { code: "task-already-resolved" });
  const third = await client.create(question);
  server.end(third.id, "approved");
  server.plan(/approve/, answer(503, "overloaded", { "retry-after": "0" }));
  await assert.rejects(client.approve(third.id), { code: "task-already-resolved" }, "the first attempt was refused");
});

test("deliveries of all pages are listed", async () => {
  const deliveries = Array.from({ length: 250 }, (_, number) => ({ id: String(number), status: "sent" }));
  server.deliveries.set(id, deliveries);
  assert.deepEqual(await client.webhooks.deliveries(id), deliveries);
});

test("webhooks are registered once, tried and deleted", async () => {
  server.plan(/POST .*webhooks/, "lose");
  const webhook = await client.webhooks.register(id, { url: "https://engine.example.com/x", events: ["approved", "cancelled"] });
  const calls = server.calls(/POST .*webhooks/);
  assert.equal(calls.length, 2);
  assert.equal(calls[0].headers["idempotency-key"], calls[1].headers["idempotency-key"]);
  assert.deepEqual(calls[0].body, { url: "https://engine.example.com/x", events: ["approved", "cancelled"], taskId: id });
  assert.equal((await client.webhooks.test(webhook.id)).success, true);
  server.plan(/DELETE/, "lose");
  await client.webhooks.delete(webhook.id);
  await assert.rejects(client.webhooks.delete(webhook.id), { code: "not-found" });
});

test("a test call is not repeated if it may have been made", async () => {
  server.plan(/\/test/, "lose");
  await assert.rejects(client.webhooks.test("b1"), { code: "connection-failed" });
  assert.equal(server.calls(/\/test/).length, 1);
  server.plan(/\/test/, answer(503, "database-unavailable", { "retry-after": "0" }));
  await assert.rejects(client.webhooks.test("b1"), { code: "database-unavailable" });
  assert.equal(server.calls(/\/test/).length, 2);
  server.plan(/\/test/, answer(429, "rate-limited", { "retry-after": "0" }));
  assert.equal((await client.webhooks.test("b1")).success, true);
});

test("a list brings every page, each task once", async () => {
  for (let number = 0; number < 24; number++) await client.create({ ...question, title: `Task ${number}` });
  const titles = [];
  for await (const task of client.tasks({ pageSize: 10 })) {
    // A task that is created while the list is read moves the others.
    if (titles.length === 3) await client.create({ ...question, title: "New" });
    titles.push(task.title);
  }
  assert.equal(new Set(titles).size, 25);
  assert.equal(titles.length, 25);
  assert.equal(server.calls(/GET .*limit=10/).length, 3);
});

test("a list stops when its reader does", async () => {
  for (let number = 0; number < 5; number++) await client.create(question);
  for await (const task of client.tasks({ pageSize: 2 })) {
    assert.ok(task.id);
    break;
  }
  assert.equal(server.calls(/GET .*limit=2/).length, 1);
});

test("filters become parameters", async () => {
  const options = { role: "creator", status: "pending", title: "One, two", public: false, pattern: "a b", sort: "title:1", include: ["created"] };
  for await (const task of client.tasks(options)) assert.ok(task);
  const { searchParams } = new URL(server.calls(/GET/)[0].line.slice(4), server.url);
  assert.deepEqual(searchParams.getAll("filter"), ["status:pending", "title:One\\, two", "public:false"]);
  const rest = ["role", "pattern", "sort", "include", "limit"].map((name) => searchParams.get(name));
  assert.deepEqual(rest, ["creator", "a b", "title:1", "created", "100"]);
});

test("a link to another place is not followed, and one to itself ends the list", async () => {
  const page = (link) => ({ status: 200, body: JSON.stringify([{ id: "a1" }]), headers: { "content-type": "application/json", link } });
  server.plan(/GET/, page('<http://127.0.0.1:1/elsewhere?limit=100&offset=7>; rel="next"'), page('</people-task/tasks?limit=100&offset=7>; rel="next"'));
  const found = [];
  for await (const task of client.tasks()) found.push(task.id);
  assert.deepEqual(found, ["a1"]);
  assert.deepEqual(server.calls(/GET/).map((call) => call.line), ["GET /people-task/tasks?limit=100", "GET /people-task/tasks?limit=100&offset=7"]);
});
