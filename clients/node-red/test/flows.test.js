"use strict";
const assert = require("node:assert/strict");
const { readdir, rm, writeFile } = require("node:fs/promises");
const { join } = require("node:path");
const { after, before, beforeEach, test } = require("node:test");

const { Sink, flowOf } = require("./support/flow.js");
const { NodeRed, cleanUp, until } = require("./support/node-red.js");

let answer, server, sink, red;
const credentials = { server: { key: "csk_test" } };
const deploy = (ask) => red.deploy(flowOf({ url: server.url, sink: sink.url, ask }), credentials);
const created = () => server.calls(/POST \/people-task\/tasks$/);
const taskOf = (title) => [...server.tasks.values()].find((task) => task.title === title);

/** Sends a message and returns its task. */
async function ask(title, more = {}) {
  await red.send({ title, ...more });
  await until(() => taskOf(title), `the task ${title}`);
  return taskOf(title);
}

/** Waits for the only message of an output. */
async function one(output, condition = () => true, seconds = 30) {
  await until(() => sink.of(output).some(condition), `a message of ${output}\n${red.log}`, seconds);
  const found = sink.of(output).filter(condition);
  assert.equal(found.length, 1);
  return found[0];
}

before(async () => {
  let FakeServer;
  ({ FakeServer, answer } = await import("../../js/test/support/server.js"));
  server = await new FakeServer().start();
  sink = await new Sink().start();
  red = await NodeRed.create(flowOf({ url: server.url, sink: sink.url }), credentials);
});
beforeEach(async () => {
  sink.messages.length = 0;
  server.requests.length = 0;
  server.tasks.clear();
});
after(async () => {
  await red?.stop();
  await sink?.stop();
  await server?.stop();
  await cleanUp();
});

test("each way to end has an output", async () => {
  for (const [status, comment] of [["approved", "Fine."], ["rejected", "No."], ["cancelled", "Shipped already."]]) {
    const task = await ask(`Order ${status}`, { order: 4711, bytes: "raw", metadata: { order: 4711 } });
    assert.deepEqual(task.metadata, { order: 4711 });
    assert.equal(task.requester, "ada@example.com");
    server.end(task.id, status, comment);
    const message = await one(status);
    assert.equal(message.order, 4711);
    assert.equal(message.bytes, "raw");
    assert.equal(message.payload.title, `Order ${status}`);
    const { id, comment: said, decidedBy, status: told } = message.decision;
    assert.deepEqual([id, said, decidedBy, told], [task.id, comment, "grace@example.com", status]);
    assert.equal(message.decision.approverSecret, undefined);
  }
  assert.equal(sink.messages.length, 3);
  await until(async () => (await red.kept()).length === 0, "an empty folder");
});

test("what waits goes on after Node-RED was killed, decided meanwhile or later", async () => {
  const [first, second, third] = [await ask("One", { order: 1, bytes: "raw" }), await ask("Two", { order: 2 }), await ask("Three", { order: 3 })];
  await until(async () => (await red.kept()).every((text) => JSON.parse(text).taskId), "all tasks are known");
  await red.stop("SIGKILL");
  server.end(first.id, "approved", "While it was down.");
  server.end(second.id, "rejected");
  assert.equal(sink.messages.length, 0);
  await red.start();
  const approved = await one("approved");
  assert.deepEqual([approved.order, approved.decision.comment, approved.bytes], [1, "While it was down.", "raw"]);
  assert.equal((await one("rejected")).order, 2);
  server.end(third.id, "cancelled");
  assert.equal((await one("cancelled")).order, 3);
  assert.equal(created().length, 3, "nothing is asked twice");
  await until(async () => (await red.kept()).length === 0, "an empty folder");
  await red.stop("SIGTERM");
  await red.start();
  assert.equal(sink.messages.length, 3, "nothing is told twice");
});

test("a question whose answer was lost with the process makes one task", async () => {
  server.plan(/POST \/people-task\/tasks$/, ...Array(200).fill("lose"));
  const task = await ask("Lost", { order: 4 });
  await red.stop("SIGKILL");
  server.tasks.get(task.id).status = "pending";
  server.plansEnd();
  await red.start();
  await until(() => server.calls(/wait=/).length > 0, "the wait");
  server.end(task.id, "approved");
  assert.equal((await one("approved")).order, 4);
  assert.equal(server.tasks.size, 1);
  assert.equal(new Set(created().map((call) => call.headers["idempotency-key"])).size, 1);
});

test("a message that cannot be read keeps no newer one from going on", async () => {
  const task = await ask("Newer", { order: 5 });
  await until(async () => (await red.kept()).every((text) => JSON.parse(text).taskId), "the task is known");
  await red.stop("SIGKILL");
  const folder = join(red.userDir, "countersign");
  const path = join(folder, (await readdir(folder))[0], "deep.json");
  const deep = `${'{"in":'.repeat(20_000)}1${"}".repeat(20_000)}`;
  await writeFile(path, `{"id": "deep", "created": 1, "message": ${deep}}`);
  await red.start();
  await until(() => red.log.includes("A message that waited cannot be read: deep"), "the error");
  server.end(task.id, "approved");
  assert.equal((await one("approved")).order, 5);
  await rm(path);
});

test("what waits goes on after a deploy", async () => {
  const task = await ask("Deployed", { order: 5 });
  await until(() => server.calls(/wait=/).length === 1, "the first wait");
  await deploy();
  await until(() => server.calls(/wait=/).length === 2, "the second wait");
  server.end(task.id, "approved");
  assert.equal((await one("approved")).order, 5);
  assert.equal(created().length, 1);
});

test("the server may restart, be unavailable and answer with pages meanwhile", async () => {
  const page = { status: 502, body: "<html>", headers: { "content-type": "text/html" } };
  server.plan(/POST \/people-task\/tasks$/, "cut", answer(503, "database-unavailable"), "lose");
  const task = await ask("Through failures", { order: 6 });
  const json = { status: 200, body: '{"status":"ok"}', headers: { "content-type": "application/json" } };
  server.plan(/wait=/, page, answer(429, "rate-limited", { "retry-after": "1" }), json);
  await until(() => server.calls(/wait=/).length >= 4, "the fourth wait");
  await server.stop();
  server.end(task.id, "approved");
  await server.start();
  assert.equal((await one("approved")).order, 6);
  assert.equal(server.tasks.size, 1);
});

test("the due date has an output, and the decision still comes", async () => {
  const task = await ask("Due", { due: 1, order: 7 });
  const due = await one("due");
  assert.deepEqual([due.order, due.decision.status, due.decision.id], [7, "due", task.id]);
  server.end(task.id, "approved");
  assert.equal((await one("approved")).order, 7);
  assert.equal(sink.of("due").length, 1);
});

test("a question is withdrawn when it is due, if that is wanted", async () => {
  await deploy({ withdraw: true });
  const task = await ask("Withdrawn", { due: 1 });
  assert.equal((await one("due")).decision.status, "due");
  assert.equal(server.tasks.get(task.id).status, "cancelled");
  server.plan(/\/cancel$/, (request) => {
    server.end(taskOf("Decided in the last moment").id, "approved");
    request.socket.destroy();
  });
  await ask("Decided in the last moment", { due: 1 });
  await one("approved");
  assert.equal(sink.messages.length, 2);
  await deploy();
});

test("a question is due by the server's clock", async () => {
  await deploy({ withdraw: true });
  const there = (seconds) => new Date(Date.now() + (seconds - 300) * 1000);
  const { date } = server;
  server.date = () => there(0).toUTCString();
  const task = await ask("Due later there", { due: there(120).toISOString() });
  await until(() => server.calls(/wait=30/).length === 1, "the wait");
  server.end(task.id, "approved");
  await one("approved");
  const late = await ask("Due soon there", { due: 1 });
  assert.ok(Math.abs(Date.parse(`${late.decisionBy.replace(" ", "T")}Z`) - there(0)) < 60_000);
  assert.equal((await one("due")).decision.id, late.id);
  assert.equal(sink.messages.length, 2);
  server.date = date;
  await deploy();
});

test("the fifth output has the link for the approver, and no other has", async () => {
  await deploy({ link: true, title: "payload.title", titleType: "msg" });
  const task = await ask("Linked");
  const { decision } = await one("asked");
  assert.match(decision.link, new RegExp(`^${server.url}/tasks\\?id=${task.id}&secret=[0-9a-f]{64}$`));
  assert.equal(decision.approverSecret, undefined);
  const secret = decision.link.split("secret=")[1];
  server.end(task.id, "approved");
  assert.ok(!JSON.stringify(await one("approved")).includes(secret));
  assert.ok(!red.log.includes(secret));
  await deploy();
});

test("a refused question is an error, and is not kept", async () => {
  server.plan(/POST \/people-task\/tasks$/, answer(400, "validation-failed"));
  await red.send({ title: "Refused", order: 8 });
  const error = await one("error");
  assert.deepEqual([error.source, error.order], ["ask", 8]);
  assert.match(error.error, /validation-failed/);
  await red.send({ order: 9 });
  assert.match((await one("error", (message) => message.order === 9)).error, /"title" is empty/);
  await until(async () => (await red.kept()).length === 0, "an empty folder");
});

test("a message waits while the key is refused, and goes on with another one", async () => {
  const task = await ask("Revoked", { order: 10 });
  await until(() => server.calls(/wait=/).length === 1, "the first wait");
  server.key = "csk_second";
  server.end(task.id, "approved");
  assert.match((await one("error")).error, /invalid-key/);
  assert.equal((await red.kept()).length, 1);
  await red.deploy(flowOf({ url: server.url, sink: sink.url }), { server: { key: "csk_second" } });
  assert.equal((await one("approved")).order, 10);
  server.key = "csk_test";
  await deploy();
});

test("a message waits while the server does not know its task, such as with the key of another account", async () => {
  const task = await ask("Foreign", { order: 11 });
  await until(() => server.calls(/wait=/).length === 1, "the first wait");
  server.tasks.delete(task.id);
  await deploy();
  assert.match((await one("error")).error, /not-found/);
  assert.equal((await red.kept()).length, 1);
  server.tasks.set(task.id, task);
  server.end(task.id, "approved");
  await deploy();
  assert.equal((await one("approved")).order, 11);
  assert.equal(sink.of("error").length, 1);
});

test("a refused key is not tried by every message", async () => {
  const numbers = Array.from({ length: 12 }, (_, number) => number);
  for (const order of numbers) await red.send({ title: `Refused ${order}`, order });
  await until(() => server.calls(/wait=/).length >= 12, "all waits");
  server.key = "csk_second";
  server.requests.length = 0;
  for (const task of server.tasks.values()) server.end(task.id, "approved");
  await until(() => sink.of("error").length > 0, "an error");
  await red.send({ title: "Later", order: 12 });
  await until(async () => (await red.kept()).length === 13, "the last message is kept");
  await assert.rejects(until(() => server.requests.length > 1, "another call", 3));
  assert.equal(sink.of("error").length, 1);
  server.key = "csk_test";
  await deploy();
  await until(() => sink.of("approved").length === 12 && taskOf("Later"), "all messages");
  server.end(taskOf("Later").id, "approved");
  await one("approved", (message) => message.order === 12);
});

test("decide approves, rejects and withdraws, and says when it cannot", async () => {
  for (const [action, status] of [["approve", "approved"], ["reject", "rejected"], ["cancel", "cancelled"]]) {
    const task = await ask(`To ${action}`);
    await red.send({ task: task.id, action, comment: "By the flow." });
    const decided = await one("decided", (message) => message.decision.id === task.id);
    assert.equal(decided.decision.status, status);
    assert.equal((await one(status)).decision.comment, "By the flow.");
  }
  const { id } = taskOf("To reject");
  await red.send({ task: id, action: "approve", order: 11 });
  assert.match((await one("error")).error, /task-already-resolved/);
  await red.send({ task: id, action: "delete", order: 12 });
  assert.match((await one("error", (message) => message.order === 12)).error, /"action" must be/);
  assert.equal(server.calls(/approve/).length, 2);
});

test("more messages wait than calls are open", async () => {
  const numbers = Array.from({ length: 60 }, (_, number) => number);
  for (const number of numbers) await red.send({ title: `Many ${number}`, order: number });
  await until(() => server.tasks.size === 60, "all tasks");
  for (const task of server.tasks.values()) server.end(task.id, "approved");
  await until(() => sink.of("approved").length === 60, "all messages", 60);
  assert.deepEqual(sink.of("approved").map((message) => message.order).sort((a, b) => a - b), numbers);
  assert.doesNotMatch(red.log, /MaxListenersExceededWarning/);
});

test("the key is in no file that is kept, no flow and no log", async () => {
  const { readFile } = require("node:fs/promises");
  const { join } = require("node:path");
  const task = await ask("Secret");
  const kept = await red.kept();
  const files = await Promise.all(["flows.json", "flows_cred.json"].map((name) => readFile(join(red.userDir, name), "utf8")));
  for (const text of [...kept, ...files, red.log]) assert.ok(!text.includes("csk_test"));
  assert.equal(kept.length, 1);
  assert.ok(!kept[0].includes("ecret\":\""), "no secret of the task is kept");
  server.end(task.id, "approved");
  await one("approved");
});
