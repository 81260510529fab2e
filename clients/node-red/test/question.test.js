"use strict";
const assert = require("node:assert/strict");
const { test } = require("node:test");

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
