import assert from "node:assert/strict";
import { after, afterEach, before, describe, test } from "node:test";

import { DECIDING_KEY, FakeCountersign, KEY } from "./fake-countersign.ts";
import { Session } from "./session.ts";

const CHAIR = { title: "Buy a chair", description: "The old one squeaks.", approver: "grace@example.com" };

describe("the tools", () => {
  let countersign: FakeCountersign;
  let session: Session;

  const settings = (more: Record<string, string> = {}) => ({
    COUNTERSIGN_URL: countersign.url,
    COUNTERSIGN_KEY: KEY,
    ...more,
  });
  const ask = async (more: Record<string, unknown> = {}) => (await session.call("request_approval", { ...CHAIR, ...more })).approval;

  before(async () => {
    countersign = await new FakeCountersign().start();
    session = await Session.open(settings());
  });
  after(async () => {
    await session.close();
    await countersign.stop();
  });
  afterEach(() => {
    assert.deepEqual(countersign.faults, []);
    for (const secret of [KEY, DECIDING_KEY, ...countersign.secrets]) {
      assert.ok(!session.heard.includes(secret), "a secret was told");
    }
  });

  test("there are four, and none decides", async () => {
    const { tools } = await session.client.listTools();
    const names = tools.map(({ name }) => name).sort();
    assert.deepEqual(names, ["cancel_approval", "check_approval", "request_approval", "wait_for_approval"]);
    const parameters = JSON.stringify(tools.map(({ inputSchema }) => Object.keys(inputSchema.properties ?? {})));
    assert.doesNotMatch(parameters, /approve"|reject|decision"|status|secret/);
  });

  test("a request is pending, and its link has no secret", async () => {
    const asked = await ask({ decision_by: "2030-01-31T12:00:00Z" });
    assert.equal(asked.status, "pending");
    assert.equal(asked.approved, false);
    assert.equal(asked.requester, "ada@example.com");
    assert.equal(asked.page, `${countersign.url}/tasks?id=${asked.id}`);
    const { approval } = await session.call("check_approval", { id: asked.id });
    assert.equal(approval.status, "pending");
  });

  test("the lengths of texts are told, and counted by Countersign alone", async () => {
    const { tools } = await session.client.listTools();
    const lengths = tools.map(({ inputSchema }) => JSON.stringify(inputSchema).match(/"maxLength":\d+/g));
    assert.deepEqual(lengths.flat().filter(Boolean), ['"maxLength":500', '"maxLength":20000', '"maxLength":2000']);
    const { id, status } = await ask({ title: "😀".repeat(400), description: "😀".repeat(15_000) });
    assert.equal(status, "pending");
    const { approval } = await session.call("cancel_approval", { id, reason: "😀".repeat(1500) });
    assert.equal(approval.status, "cancelled");
  });

  for (const [status, approved] of [["approved", true], ["rejected", false], ["cancelled", false]] as const) {
    test(`waiting tells that a request was ${status}, as soon as it is`, async () => {
      const { id } = await ask();
      const waiting = session.call("wait_for_approval", { id });
      await countersign.until(() => countersign.requests.at(-1) === `GET /people-task/tasks/${id}`);
      countersign.end(String(id), status, "Because.");
      const { approval } = await waiting;
      assert.equal(approval.status, status);
      assert.equal(approval.approved, approved);
      assert.equal(approval.comment, "Because.");
      assert.equal(approval.decided_by, "grace@example.com");
    });
  }

  test("waiting ends when its time is over", async () => {
    const { id } = await ask({ decision_by: "2020-01-01T00:00:00Z" });
    const started = Date.now();
    const { approval } = await session.call("wait_for_approval", { id, timeout_seconds: 1 });
    assert.equal(approval.status, "pending");
    assert.ok(Date.now() - started < 5000);
  });

  test("a date has passed by the clock of Countersign", async () => {
    const { id } = await ask();
    for (const ahead of [-300_000, 300_000]) {
      countersign.ahead = ahead;
      for (const [seconds, isOverdue] of [[-10, true], [120, false]] as const) {
        const due = new Date(Date.now() + ahead + seconds * 1000).toISOString();
        Object.assign(countersign.tasks.get(String(id)) ?? {}, { decisionBy: due.slice(0, 19).replace("T", " ") });
        const { approval } = await session.call("check_approval", { id });
        assert.equal(String(approval.next).includes("has passed"), isOverdue);
      }
    }
    countersign.ahead = 0;
  });

  test("a server that responds at once is asked less and less", async () => {
    const { id } = await ask();
    countersign.isBusy = true;
    const before = countersign.requests.length;
    const { approval } = await session.call("wait_for_approval", { id, timeout_seconds: 8 });
    countersign.isBusy = false;
    assert.equal(approval.status, "pending");
    assert.ok(countersign.requests.length - before < 10);
  });

  test("waiting survives a restart of the server", async () => {
    const { id } = await ask();
    const waiting = session.call("wait_for_approval", { id, timeout_seconds: 60 });
    await countersign.until(() => countersign.requests.at(-1) === `GET /people-task/tasks/${id}`);
    await countersign.stop();
    countersign.end(String(id), "approved");
    await countersign.start();
    assert.equal((await waiting).approval.status, "approved");
  });

  test("waiting survives a proxy's page and an overload", async () => {
    const { id } = await ask();
    countersign.faults.push("page", "unavailable", "lose-request");
    const waiting = session.call("wait_for_approval", { id, timeout_seconds: 60 });
    await countersign.until(() => countersign.faults.length === 0);
    countersign.end(String(id), "rejected");
    assert.equal((await waiting).approval.status, "rejected");
  });

  test("asking goes on after errors of proxies, and not after one that lasts", async () => {
    countersign.faults.push(500, 520, 527);
    assert.equal((await ask()).status, "pending");
    const { id } = await ask();
    countersign.faults.push(501);
    const refused = await session.call("check_approval", { id });
    assert.match(refused.text, /unexpected-response/);
  });

  test("a wait that the client cancels ends its request", async () => {
    const { id } = await ask();
    const abort = new AbortController();
    const waiting = session.call("wait_for_approval", { id }, { signal: abort.signal });
    await countersign.until(() => countersign.requests.at(-1) === `GET /people-task/tasks/${id}`);
    const abandoned = countersign.abandoned;
    abort.abort();
    await assert.rejects(waiting);
    await countersign.until(() => countersign.abandoned === abandoned + 1);
  });

  test("a client that wants to know hears that waiting goes on", async () => {
    const { id } = await ask();
    const waiting = new Promise<void>((resolve, reject) => {
      session.call("wait_for_approval", { id }, { onprogress: resolve }).catch(reject);
    });
    await waiting;
    countersign.end(String(id), "approved");
  });

  test("a lost response makes no second task", async () => {
    await ask();
    const tasks = countersign.tasks.size;
    countersign.faults.push("lose-response", "unavailable");
    assert.equal((await ask()).status, "pending");
    assert.equal(countersign.tasks.size, tasks + 1);
  });

  test("two calls make two requests, and one with the same idempotency key", async () => {
    const [first, second] = [await ask(), await ask()];
    assert.notEqual(first.id, second.id);
    const key = { idempotency_key: "run-7/step-2" };
    assert.equal((await ask(key)).id, (await ask(key)).id);
  });

  test("withdrawing tells the reason, and leaves a decision as it is", async () => {
    const { id } = await ask();
    const withdrawn = await session.call("cancel_approval", { id, reason: "Bought already." });
    assert.equal(withdrawn.approval.status, "cancelled");
    assert.equal(withdrawn.approval.comment, "Bought already.");

    const other = await ask();
    countersign.end(String(other.id), "approved");
    const late = await session.call("cancel_approval", { id: other.id });
    assert.deepEqual([late.isError, late.approval.status], [false, "approved"]);
  });

  test("a key that is revoked while waiting ends it, and is not told", async () => {
    const { id } = await ask();
    const waiting = session.call("wait_for_approval", { id });
    await countersign.until(() => countersign.requests.at(-1) === `GET /people-task/tasks/${id}`);
    countersign.revoked.add(KEY);
    countersign.end(String(id), "approved");
    const { isError, text } = await waiting;
    countersign.revoked.clear();
    assert.equal(isError, true);
    assert.match(text, /^invalid-key: The key \[hidden\] is invalid\.$/);
  });

  test("a link and a key in a comment are hidden", async () => {
    const { id } = await ask();
    countersign.end(String(id), "rejected", `See https://x.example/tasks?id=1&secret=${"f".repeat(64)}, and use ${KEY}`);
    const { approval } = await session.call("check_approval", { id });
    assert.equal(approval.comment, "See https://x.example/tasks?id=1&secret=[hidden] and use [hidden]");
  });

  test("a problem names its fields", async () => {
    const { isError, text } = await session.call("request_approval", { ...CHAIR, title: "Invalid" });
    assert.equal(isError, true);
    assert.equal(text, "validation-failed: validation-failed approver: Must be an address.");
  });

  test("an unknown request is an error with the code of the problem", async () => {
    const { isError, text } = await session.call("check_approval", { id: "0".repeat(24) });
    assert.deepEqual([isError, text], [true, "not-found: not-found"]);
  });

  test("a key that may decide is refused before anything is created", async () => {
    const other = await Session.open(settings({ COUNTERSIGN_KEY: DECIDING_KEY }));
    const tasks = countersign.tasks.size;
    const { isError, text } = await other.call("request_approval", CHAIR);
    await other.close();
    assert.equal(isError, true);
    assert.match(text, /^key-decides: /);
    assert.equal(countersign.tasks.size, tasks);
    assert.ok(!other.heard.includes(DECIDING_KEY));
  });

  test("the settings name the requester and who decides", async () => {
    const set = { COUNTERSIGN_REQUESTER: "bob@example.com", COUNTERSIGN_DECIDERS: "approver" };
    const other = await Session.open(settings(set));
    const { approval } = await other.call("request_approval", CHAIR);
    await other.close();
    const task = countersign.tasks.get(String(approval.id));
    assert.deepEqual([task?.requester, task?.deciders, task?.notify], ["bob@example.com", "approver", true]);
  });
});
