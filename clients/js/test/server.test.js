// The client with a real server.
import assert from "node:assert/strict";
import { createServer } from "node:http";
import { readFile } from "node:fs/promises";
import { after, before, describe, test } from "node:test";

import { Countersign, DecisionTimeoutError, RejectedError, newWebhookSecret } from "@countersign/client";

import { DOCUMENT } from "../scripts/document.js";
import { Proxy } from "./support/proxy.js";
import { call, newUser, skip, until, url } from "./support/real.js";

describe("with a real server", { skip }, () => {
  let ada;
  let client;
  let visitor;
  let number = 0;
  const question = (more = {}) => ({ title: `Order ${ada.unique} ${++number}`, approver: "grace@example.com", ...more });

  before(async () => {
    ada = await newUser("ada.js");
    client = new Countersign({ url, key: ada.key });
    visitor = new Countersign({ url });
  });

  test("the types are those of the server", async () => {
    const document = await (await fetch(new URL("/openapi.json", url))).json();
    assert.deepEqual(JSON.parse(await readFile(DOCUMENT, "utf8")), document, "the server is of another version");
  });

  test("an approver decides by the link, and the asker goes on", async () => {
    const onCreated = (task) => void visitor.approve(task.id, { secret: task.approverSecret, comment: "Fine.", version: 1 });
    const approval = await client.ask(question({ metadata: { order: 4711 } }), { onCreated, include: ["metadata", "created"] });
    const { status, comment, requester, metadata, version, decidedVia } = approval;
    assert.deepEqual({ status, comment, requester, metadata, version }, { status: "approved", comment: "Fine.", requester: ada.email, metadata: { order: 4711 }, version: 1 });
    assert.equal(decidedVia.type, "task-secret");
    assert.ok(Math.abs(new Date(approval.decisionMade) - Date.now()) < 60_000);
  });

  test("rejections, withdrawals and the end of the time", async () => {
    const onCreated = (task) => client.reject(task.id, { comment: "Too expensive." });
    await assert.rejects(client.ask(question(), { onCreated }), (error) => error instanceof RejectedError && error.comment === "Too expensive.");
    const withdrawn = (task) => client.cancel(task.id, { reason: "Shipped already." });
    await assert.rejects(client.ask(question(), { onCreated: withdrawn }), { code: "cancelled", reason: "Shipped already." });
    const late = await client.ask(question(), { timeout: 1, withdrawOnTimeout: true }).catch((error) => error);
    assert.ok(late instanceof DecisionTimeoutError && late.withdrawn);
    assert.equal((await client.wait(late.taskId)).status, "cancelled");
    await assert.rejects(client.approve(late.taskId), (error) => error.code === "task-already-resolved" && error.problem.taskStatus === "cancelled");
    const due = new Date(Date.now() + 2000);
    await assert.rejects(client.ask(question({ decisionBy: due })), { code: "decision-timeout", withdrawn: false });
  });

  test("the network fails in between, and there is one task and one decision", async () => {
    const proxy = await new Proxy(url).start();
    const behind = new Countersign({ url: proxy.url, key: ada.key });
    const { title, ...rest } = question();
    let id;
    const onCreated = (task) => (id = task.id);
    await proxy.stop();
    const asked = behind.ask({ title, ...rest }, { onCreated });
    await proxy.start();
    await until(() => id !== undefined, "the creation");
    for (let cut = 0; cut < 3; cut++) {
      const before = proxy.connections;
      proxy.cut();
      await until(() => proxy.connections > before, "a new connection");
    }
    await proxy.stop();
    await client.approve(id, { comment: "While it was cut." });
    await proxy.start();
    assert.equal((await asked).comment, "While it was cut.");
    assert.equal(await client.count({ pattern: title }), 1);
    await proxy.stop();
  });

  test("the same key makes one task, and another body with it is refused", async () => {
    const asked = question();
    const idempotencyKey = `order-${ada.unique}`;
    const both = await Promise.all([1, 2].map(() => client.create(asked, { idempotencyKey })));
    assert.equal(both[0].id, both[1].id);
    assert.equal(both[0].approverSecret, both[1].approverSecret);
    await assert.rejects(client.create(question(), { idempotencyKey }), { code: "idempotency-key-reused", status: 422 });
  });

  test("a key that lacks a scope or is revoked is refused, also in a wait", async () => {
    const poor = new Countersign({ url, key: (await ada.newKey(["tasks:read", "tasks:write"])).key, requester: ada.email });
    const task = await poor.create(question());
    await assert.rejects(poor.approve(task.id), { code: "insufficient-scope", status: 403 });
    const made = await ada.newKey(["tasks:read"]);
    const revoked = new Countersign({ url, key: made.key });
    const waited = revoked.wait(task.id, { timeout: 20 }).catch((error) => error);
    await revoked.get(task.id);
    await call("DELETE", `/user/keys/${made.id}`, { token: ada.token });
    // All gateways know of it within a second.
    await until(() => revoked.get(task.id, { retryFor: 0 }).then(() => false, (error) => error.status === 401), "the revocation");
    await client.approve(task.id);
    const error = await waited;
    assert.deepEqual([error.status, error.code], [401, "invalid-key"]);
    assert.ok(!JSON.stringify(error).includes(made.key) && !String(error.stack).includes(made.key));
  });

  test("an edit is seen, and a decision about an older version is refused", async () => {
    const task = await client.create(question());
    await client.edit(task.id, { description: "Two of them.", decisionBy: new Date("2099-12-31T12:00:00Z") });
    const seen = await client.get(task.id, { include: ["version"] });
    assert.deepEqual([seen.version, seen.description, seen.decisionBy], [2, "Two of them.", "2099-12-31 12:00:00"]);
    await assert.rejects(client.approve(task.id, { version: 1 }), { code: "task-changed" });
    assert.equal((await client.approve(task.id, { version: 2 })).status, "approved");
  });

  test("a list brings every page", async () => {
    const word = `list${ada.unique}`;
    for (let n = 0; n < 7; n++) await client.create(question({ title: `${word}, ${n}` }));
    const titles = [];
    for await (const task of client.tasks({ pattern: word, sort: "title:1", pageSize: 3, include: ["created"] })) {
      assert.ok(task.created);
      titles.push(task.title);
    }
    assert.deepEqual(titles, Array.from({ length: 7 }, (_, n) => `${word}, ${n}`));
    assert.equal(await client.count({ pattern: word, status: "pending", role: "creator" }), 7);
    assert.equal(await client.count({ title: `${word}, 3` }), 1);
  });

  describe("webhooks", () => {
    const received = [];
    const receiver = createServer(async (request, response) => {
      const parts = [];
      for await (const part of request) parts.push(part);
      received.push({ headers: request.headers, body: Buffer.concat(parts), path: request.url });
      response.end("{}");
    });
    const of = (path) => received.filter((call) => call.path === path);
    let engine;
    before(async () => {
      await new Promise((resolve) => receiver.listen(0, "127.0.0.1", resolve));
      engine = `http://127.0.0.1:${receiver.address().port}`;
    });
    after(() => {
      receiver.closeAllConnections();
      receiver.close();
    });

    test("a call verifies by both signatures, and not when it is forged", async () => {
      const secret = newWebhookSecret();
      const task = await client.create(question({ title: `Größe \\/ 🪑 ${ada.unique}`, webhooks: [{ url: `${engine}/1`, secret, include: ["decidedBy"] }] }));
      await client.approve(task.id, { comment: "Ja: 🪑" });
      await until(() => of("/1").length === 1, "the call");
      const [{ headers, body }] = of("/1");
      const byKey = await client.verify(headers, body);
      const bySecret = await client.verify(headers, body, { secret });
      assert.deepEqual(byKey, bySecret);
      assert.deepEqual([byKey.body.id, byKey.body.status, byKey.body.comment, byKey.body.decidedBy, byKey.isTest], [task.id, "approved", "Ja: 🪑", ada.email, false]);
      const forged = Buffer.from(body.toString().replace("approved", "rejected"));
      await assert.rejects(client.verify(headers, forged), { code: "no-valid-signature" });
      await assert.rejects(client.verify(headers, forged, { secret }), { code: "no-valid-signature" });
      await assert.rejects(client.verify(headers, body, { secret: newWebhookSecret() }), { code: "no-valid-signature" });
      // Until its result is recorded, a delivery is being sent, and is not sent a second time.
      let delivery;
      await until(async () => ([delivery] = await client.webhooks.deliveries(task.id))[0].status === "sent", "the result");
      assert.equal(delivery.id, byKey.id);
      await client.webhooks.redeliver(delivery.id);
      await until(() => of("/1").length === 2, "the repeat");
      assert.equal((await client.verify(of("/1")[1].headers, of("/1")[1].body)).id, byKey.id);
    });

    test("a webhook is registered, tried, listed and deleted", async () => {
      const task = await client.create(question());
      const webhook = await client.webhooks.register(task.id, { url: `${engine}/2`, events: ["cancelled"] });
      assert.deepEqual((await client.webhooks.list(task.id)).map(({ id }) => id), [webhook.id]);
      assert.deepEqual(await client.cancelPreview(task.id), { webhooksTold: 1, webhooksNotTold: 0 });
      const tried = await client.webhooks.test(webhook.id);
      assert.deepEqual([tried.success, tried.statusCode], [true, 200]);
      const call = await client.verify(of("/2")[0].headers, of("/2")[0].body);
      assert.deepEqual([call.isTest, call.body.status], [true, "test"]);
      await client.webhooks.delete(webhook.id);
      assert.deepEqual(await client.webhooks.list(task.id), []);
    });
  });
});
