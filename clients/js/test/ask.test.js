import assert from "node:assert/strict";
import { afterEach, beforeEach, test } from "node:test";
import { inspect } from "node:util";

import { CancelledError, Countersign, DecisionTimeoutError, RejectedError } from "@countersign/client";

import { FakeServer } from "./support/server.js";

let server;
let client;
const question = { title: "Ship order 4711", approver: "grace@example.com" };
const onlyTask = () => [...server.tasks.values()][0];

beforeEach(async () => {
  server = await new FakeServer().start();
  client = new Countersign({ url: server.url, key: server.key });
});
afterEach(() => server.stop());

test("an approval is returned with who decided it and the comment", async () => {
  const asked = client.ask(question);
  await server.until(() => server.calls(/wait=/).length === 1);
  server.end(onlyTask().id, "approved", "Fine.");
  const { status, title, decidedBy, comment, version } = await asked;
  assert.deepEqual({ status, title, decidedBy, comment, version }, { status: "approved", title: question.title, decidedBy: "grace@example.com", comment: "Fine.", version: 1 });
});

test("a rejection, a withdrawal and the end of the time are three errors", async () => {
  for (const [status, type, code] of [["rejected", RejectedError, "rejected"], ["cancelled", CancelledError, "cancelled"]]) {
    const onCreated = (task) => server.end(task.id, status, "No.");
    const error = await client.ask(question, { onCreated }).catch((error) => error);
    assert.ok(error instanceof type);
    assert.deepEqual([error.code, error.decision.comment, error.comment ?? error.reason], [code, "No.", "No."]);
  }
  const error = await client.ask(question, { timeout: 0.2 }).catch((error) => error);
  assert.ok(error instanceof DecisionTimeoutError);
  assert.equal(error.code, "decision-timeout");
  assert.equal(server.tasks.get(error.taskId).status, "pending");
});

test("a question that is late is withdrawn if that is wanted", async () => {
  const error = await client.ask(question, { timeout: 0.2, withdrawOnTimeout: true }).catch((error) => error);
  assert.deepEqual([error.code, error.withdrawn], ["decision-timeout", true]);
  assert.equal(onlyTask().status, "cancelled");
});

test("a decision in the moment of the withdrawal counts", async () => {
  server.plan(/\/cancel/, (_, response) => {
    server.end(onlyTask().id, "approved", "Just in time.");
    response.writeHead(409, { "content-type": "application/problem+json" });
    response.end(JSON.stringify({ code: "task-already-resolved", detail: "Too late.", taskStatus: "approved" }));
  });
  const decision = await client.ask(question, { timeout: 0, withdrawOnTimeout: true });
  assert.equal(decision.comment, "Just in time.");
});

test("without a time of its own, a question ends with its due date", async () => {
  const begun = Date.now();
  const due = new Date(begun + 1500);
  await assert.rejects(client.ask({ ...question, decisionBy: due }), DecisionTimeoutError);
  assert.ok(Date.now() - begun >= 1400 && Date.now() - begun < 20_000);
  assert.equal(server.calls(/POST/)[0].body.decisionBy, due.toISOString());
});

test("a question whose due date was moved waits for the new one", async () => {
  const asked = client.ask({ ...question, decisionBy: new Date(Date.now() + 1500) }, { withdrawOnTimeout: true });
  await server.until(() => server.tasks.size === 1);
  onlyTask().decisionBy = "2099-01-01 00:00:00";
  // The read after the old date is repeated: a withdrawal would be.
  server.plan(/GET [^?]*$/, ...Array(2).fill({ status: 503, body: JSON.stringify({ code: "overloaded" }) }));
  await server.until(() => server.calls(/wait=30/).length === 1, "the wait for the new date");
  assert.equal(server.calls(/cancel/).length, 0);
  server.end(onlyTask().id, "approved");
  assert.equal((await asked).status, "approved");
});

test("a due date passes by the server's clock", async () => {
  for (const ahead of [-300, 300]) {
    const there = (seconds) => new Date(Date.now() + (ahead + seconds) * 1000);
    server.date = () => there(0).toUTCString();
    const late = await client.ask({ ...question, decisionBy: there(1) }, { withdrawOnTimeout: true }).catch((error) => error);
    assert.deepEqual([late.code, late.withdrawn], ["decision-timeout", true]);
    server.requests.length = 0;
    const asked = client.ask({ ...question, decisionBy: there(120) }, { withdrawOnTimeout: true });
    await server.until(() => server.calls(/wait=30/).length === 1);
    server.end([...server.tasks.keys()].at(-1), "approved");
    assert.equal((await asked).status, "approved");
    assert.equal(server.calls(/cancel/).length, 0);
  }
});

test("only a clock that is off by a minute or more is corrected", async () => {
  const isOwn = () => Math.abs(client.now() - Date.now()) < 5000;
  assert.ok(isOwn());
  for (const date of ["soon", undefined, new Date(Date.now() - 30_000).toUTCString()]) {
    server.date = () => date;
    await client.count();
    assert.ok(isOwn(), date);
  }
  server.date = () => new Date(Date.now() - 300_000).toUTCString();
  await client.count();
  assert.ok(Math.abs(client.now() - Date.now() + 300_000) < 5000);
  server.date = () => new Date().toUTCString();
  await client.count();
  assert.ok(isOwn());
});

test("each question has a random key of its own, and a given key makes one task", async () => {
  await Promise.all([client.create(question), client.create(question)]);
  assert.equal(server.tasks.size, 2);
  const [first, second] = await Promise.all([1, 2].map(() => client.create(question, { idempotencyKey: "order-4711" })));
  assert.equal(first.id, second.id);
  assert.equal(server.tasks.size, 3);
  const keys = server.calls(/POST/).map((call) => call.headers["idempotency-key"]);
  assert.match(keys[0], /^[0-9a-f]{32}$/);
  assert.equal(new Set(keys).size, 3);
  await assert.rejects(client.create({ ...question, title: "Another" }, { idempotencyKey: "order-4711" }), { code: "idempotency-key-reused" });
});

test("the requester is the one of the question, of the client, or the user of the key", async () => {
  const own = await client.create(question);
  await client.create(question);
  assert.equal(server.calls(/GET \/user/).length, 1, "the address is kept");
  const other = new Countersign({ url: server.url, key: server.key, requester: "ada@example.com" });
  const ofClient = await other.create(question);
  const ofQuestion = await other.create({ ...question, requester: "joan@example.com" });
  assert.deepEqual([own, ofClient, ofQuestion].map((task) => task.requester), ["flows@example.com", "ada@example.com", "joan@example.com"]);
  server.scopes = ["tasks:write"];
  const poor = new Countersign({ url: server.url, key: server.key });
  await assert.rejects(poor.create(question), { code: "requester-missing" });
});

test("secrets and keys are not in what a program logs", async () => {
  const task = await client.create(question);
  assert.match(client.linkFor(task), new RegExp(`^${server.url}/tasks\\?id=${task.id}&secret=[0-9a-f]{64}$`));
  assert.ok(JSON.stringify(task).includes(task.approverSecret));
  for (const shown of [inspect(task), inspect({ task }, { depth: 5 }), inspect(client, { showHidden: true, depth: 9 })]) {
    assert.ok(!shown.includes(task.approverSecret) && !shown.includes(task.requesterSecret) && !shown.includes(server.key), shown);
  }
  server.key = "csk_another";
  const error = await client.get(task.id).catch((error) => error);
  assert.equal(error.code, "invalid-key");
  assert.ok(!inspect(error, { showHidden: true, depth: 9 }).includes("csk_test"));
});

test("an aborted signal ends the wait with its reason", async () => {
  const controller = new AbortController();
  const asked = client.ask(question, { signal: controller.signal });
  await server.until(() => server.calls(/wait=/).length === 1);
  controller.abort(new Error("stopped"));
  await assert.rejects(asked, { message: "stopped" });
});

test("wrong options are refused before anything is sent", async () => {
  for (const url of ["", "countersign", "ftp://example.com", "https://ada:secret@example.com", "https://example.com/?a=b"]) {
    assert.throws(() => new Countersign({ url }), TypeError, url);
  }
  for (const key of ["", "csk_a b", "csk_a\n", "csk_é"]) {
    assert.throws(() => new Countersign({ url: server.url, key }), (error) => error instanceof TypeError && !error.message.includes(key || "-"));
  }
  assert.throws(() => new Countersign({ url: server.url, timeout: -1 }), RangeError);
  for (const id of ["", "..", "a/b", "a?b", undefined]) {
    await assert.rejects(async () => client.get(id), TypeError);
    await assert.rejects(async () => client.webhooks.delete(id), TypeError);
  }
  for (const idempotencyKey of ["", "a\nb", "é", "x".repeat(256)]) {
    await assert.rejects(client.create({ ...question, requester: "a@example.com" }, { idempotencyKey }), TypeError);
  }
  assert.equal(server.requests.length, 0);
});
