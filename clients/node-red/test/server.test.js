// The nodes in a real Node-RED, with a real server.
"use strict";
const assert = require("node:assert/strict");
const { after, before, beforeEach, describe, test } = require("node:test");

const { Sink, flowOf } = require("./support/flow.js");
const { NodeRed, cleanUp, until } = require("./support/node-red.js");

const { COUNTERSIGN_URL } = process.env;

describe("with a real server", { skip: !COUNTERSIGN_URL && "COUNTERSIGN_URL does not name a server" }, () => {
  let ada, call, client, proxy, red, sink;
  let number = 0;

  /** Sends a message and returns its task. */
  async function ask(more = {}) {
    const title = `Node-RED ${ada.unique} ${++number}`;
    await red.send({ title, ...more });
    let found = [];
    await until(async () => {
      found = [];
      for await (const task of client.tasks({ title, include: ["metadata"] })) found.push(task);
      return found.length > 0;
    }, `the task ${title}`);
    assert.equal(found.length, 1);
    return found[0];
  }

  /** Waits for the only message of an output. */
  async function one(output) {
    await until(() => sink.of(output).length > 0, `a message of ${output}`, 180);
    assert.equal(sink.of(output).length, 1);
    return sink.of(output)[0];
  }

  const known = () => until(async () => (await red.kept()).every((text) => JSON.parse(text).taskId), "all tasks are known");

  before(async () => {
    const real = await import("../../js/test/support/real.js");
    const { Proxy } = await import("../../js/test/support/proxy.js");
    const { Countersign } = await import("../client/index.js");
    call = real.call;
    ada = await real.newUser("ada.node-red");
    client = new Countersign({ url: COUNTERSIGN_URL, key: ada.key, requester: ada.email });
    proxy = await new Proxy(COUNTERSIGN_URL).start();
    sink = await new Sink().start();
    // Without a requester it is the user of the key.
    red = await NodeRed.create(flowOf({ url: proxy.url, sink: sink.url, ask: { requester: "" } }), { server: { key: ada.key } });
  });
  beforeEach(() => {
    sink.messages.length = 0;
  });
  after(async () => {
    await red?.stop();
    await sink?.stop();
    await proxy?.stop();
    await cleanUp();
  });

  test("approved, rejected with a comment, and withdrawn", async () => {
    const task = await ask({ order: 1, metadata: { order: 1 } });
    assert.deepEqual([task.requester, task.metadata], [ada.email, { order: 1 }]);
    await client.approve(task.id, { comment: "Fine." });
    const approved = await one("approved");
    assert.deepEqual([approved.order, approved.decision.comment, approved.decision.decidedBy], [1, "Fine.", ada.email]);
    await client.reject((await ask({ order: 2 })).id, { comment: "Too expensive." });
    assert.equal((await one("rejected")).decision.comment, "Too expensive.");
    await client.cancel((await ask({ order: 3 })).id, { reason: "Shipped already." });
    assert.equal((await one("cancelled")).decision.comment, "Shipped already.");
  });

  test("due, and then decided", async () => {
    const task = await ask({ order: 4, due: 2 });
    assert.equal((await one("due")).decision.id, task.id);
    await client.approve(task.id);
    assert.equal((await one("approved")).order, 4);
  });

  test("Node-RED is killed and the network fails in between", async () => {
    const [first, second] = [await ask({ order: 5 }), await ask({ order: 6 })];
    await known();
    await red.stop("SIGKILL");
    await client.approve(first.id, { comment: "While it was down." });
    await proxy.stop();
    await red.start();
    await until(() => red.log.includes("Started flows"), "the start");
    await proxy.start();
    assert.equal((await one("approved")).decision.comment, "While it was down.");
    const { connections } = proxy;
    proxy.cut();
    await until(() => proxy.connections > connections, "a new connection");
    await client.reject(second.id);
    assert.equal((await one("rejected")).order, 6);
    assert.equal(sink.messages.length, 2);
  });

  test("decide needs the scope, and says so", async () => {
    const { key } = await ada.newKey(["tasks:read", "tasks:write", "users:read"]);
    const task = await ask();
    await known();
    await red.send({ task: task.id, action: "approve", comment: "By the flow." });
    assert.equal((await one("decided")).decision.status, "approved");
    assert.equal((await one("approved")).decision.comment, "By the flow.");
    await red.deploy(flowOf({ url: proxy.url, sink: sink.url }), { server: { key } });
    const other = await ask();
    await red.send({ task: other.id, action: "approve" });
    assert.match((await one("error")).error, /insufficient-scope/);
    await red.send({ task: other.id, action: "cancel" });
    await one("cancelled");
  });

  test("the key is revoked, and replaced", async () => {
    const made = await ada.newKey(["tasks:read", "tasks:write"]);
    await red.deploy(flowOf({ url: proxy.url, sink: sink.url }), { server: { key: made.key } });
    const task = await ask({ order: 7 });
    await known();
    await call("DELETE", `/user/keys/${made.id}`, { token: ada.token });
    // All gateways know of it within a second.
    const get = () => fetch(`${COUNTERSIGN_URL}/people-task/tasks/${task.id}`, { headers: { authorization: `Bearer ${made.key}` } });
    await until(async () => (await get()).status !== 200, "the revocation");
    await client.approve(task.id);
    assert.match((await one("error")).error, /invalid-key/);
    await red.deploy(flowOf({ url: proxy.url, sink: sink.url }), { server: { key: ada.key } });
    assert.equal((await one("approved")).order, 7);
    assert.ok(!red.log.includes(made.key) && !red.log.includes(ada.key));
  });
});
