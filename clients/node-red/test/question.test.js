"use strict";
const assert = require("node:assert/strict");
const os = require("node:os");
const { test } = require("node:test");

const { Permits } = require("../lib/permits.js");
const { Question } = require("../lib/question.js");

const permits = { wait: 0, claim: () => 0, run: (call) => call(), accepted() {}, refused() {} };

test("what is asked and due is told once though the disk fails", async () => {
  const decisionBy = "2020-01-01 12:00:00";
  const statuses = ["pending", "pending", "approved"];
  const client = {
    create: async () => ({ id: "1", status: "pending", decisionBy, approverSecret: "secret" }),
    get: async () => ({ id: "1", status: statuses.shift(), decisionBy }),
    linkFor: () => "link",
    now: () => new Date(),
  };
  const told = [];
  let saves = 0;
  // The first save after the creation fails, and the first one when the task is due.
  const save = async () => {
    saves += 1;
    if (saves < 3) throw new Error("ENOSPC");
  };
  const tell = (what) => told.push(what);
  const record = { created: Date.now(), key: "key", question: {} };
  await new Question({ client, permits, record, save, signal: new AbortController().signal, tell }).run();
  assert.deepEqual(told.filter((what) => !["trouble", "well"].includes(what)), ["asked", "due", "approved"]);
});

test("a question is asked though the clock is set forward by days meanwhile", async (t) => {
  t.mock.timers.enable({ apis: ["Date"], now: 0 });
  let calls = 0;
  const client = {
    create: async () => {
      calls += 1;
      if (calls > 1) return { id: "1", status: "pending", decisionBy: null };
      t.mock.timers.setTime(3 * 24 * 3600 * 1000);
      throw new Error("no network yet");
    },
    get: async () => ({ id: "1", status: "approved", decisionBy: null }),
    linkFor: () => "link",
    now: () => new Date(),
  };
  const record = { created: 0, key: "key", question: {} };
  const { signal } = new AbortController();
  await new Question({ client, permits, record, save: async () => {}, signal, tell() {} }).run();
  assert.equal(calls, 2);
});

test("a question whose answer was lost a day ago is not asked again, though the computer slept meanwhile", async (t) => {
  const uptime = os.uptime();
  let calls = 0;
  const create = async () => {
    calls += 1;
    t.mock.method(os, "uptime", () => uptime + 25 * 3600);
    throw new Error("the answer was lost");
  };
  const record = { created: Date.now(), key: "key", question: {} };
  const { signal } = new AbortController();
  const question = new Question({ client: { create }, permits, record, save: async () => {}, signal, tell() {} });
  await assert.rejects(question.run(), { name: "Failed" });
  assert.equal(calls, 1);
});

test("a call that waits for its turn ends with its node, and leaves the turn to the next one", async () => {
  const permits = new Permits();
  const stop = new AbortController();
  const { signal } = new AbortController();
  const ends = [];
  const running = Array.from({ length: 40 }, () => permits.run(() => new Promise((resolve) => ends.push(resolve)), signal));
  const left = permits.run(() => assert.fail("it has ended"), stop.signal);
  const next = permits.run(() => "its turn", signal);
  stop.abort(new Error("a deploy"));
  await assert.rejects(left, /a deploy/);
  ends.pop()();
  assert.equal(await next, "its turn");
  ends.forEach((end) => end());
  await Promise.all(running);
});
