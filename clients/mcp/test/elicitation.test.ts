import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";

import type { ElicitResult } from "@modelcontextprotocol/sdk/types.js";

import { FakeCountersign, KEY } from "./fake-countersign.ts";
import { Session } from "./session.ts";

const CHAIR = { title: "Buy a chair" };

describe("whom to ask", () => {
  let countersign: FakeCountersign;
  before(async () => void (countersign = await new FakeCountersign().start()));
  after(() => countersign.stop());

  /** Calls the tool in a session of its own, and returns its outcome and the forms that the client was asked to show. */
  async function request(given: Record<string, unknown>, answer?: ElicitResult, approvers = "") {
    const settings = { COUNTERSIGN_URL: countersign.url, COUNTERSIGN_KEY: KEY, COUNTERSIGN_APPROVERS: approvers };
    const session = await Session.open(settings, answer && (() => answer));
    const outcome = await session.call("request_approval", { ...CHAIR, ...given });
    await session.close();
    return { ...outcome, asked: session.asked };
  }

  const accept = (content: Record<string, string>): ElicitResult => ({ action: "accept", content });

  test("the user is asked for a missing approver and for details, and for nothing else", async () => {
    const answer = accept({ approver: "grace@example.com", description: "It squeaks." });
    const { approval, asked } = await request({}, answer);
    assert.equal(approval.approver, "grace@example.com");
    assert.equal(countersign.tasks.get(String(approval.id))?.description, "It squeaks.");
    const [form] = asked as { requestedSchema: { properties: Record<string, unknown> } }[];
    assert.deepEqual(Object.keys(form?.requestedSchema.properties ?? {}), ["approver", "description"]);
  });

  test("the user is not asked for details that are there", async () => {
    const { asked } = await request({ description: "It squeaks." }, accept({ approver: "grace@example.com" }));
    const [form] = asked as { requestedSchema: { properties: Record<string, unknown> } }[];
    assert.deepEqual(Object.keys(form?.requestedSchema.properties ?? {}), ["approver"]);
  });

  test("the user is not asked if the agent says who decides", async () => {
    const { approval, asked } = await request({ approver: "grace@example.com" }, accept({}));
    assert.equal(approval.status, "pending");
    assert.equal(asked.length, 0);
  });

  for (const action of ["decline", "cancel"] as const) {
    test(`nothing is requested after ${action}`, async () => {
      const tasks = countersign.tasks.size;
      const { isError, text } = await request({}, { action });
      assert.deepEqual([isError, text], [true, "Your user did not say who decides. Nothing was requested."]);
      assert.equal(countersign.tasks.size, tasks);
    });
  }

  test("a client without forms is told to ask its user", async () => {
    const { isError, text } = await request({});
    assert.equal(isError, true);
    assert.match(text, /`approver` is missing: ask your user/);
  });

  test("the only allowed approver is asked", async () => {
    const { approval, asked } = await request({}, accept({}), "grace@example.com");
    assert.equal(approval.approver, "grace@example.com");
    assert.equal(asked.length, 0);
  });

  test("the user chooses from the allowed approvers", async () => {
    const answer = accept({ approver: "hans@example.com" });
    const { approval, asked } = await request({}, answer, "grace@example.com, hans@example.com");
    assert.equal(approval.approver, "hans@example.com");
    assert.match(JSON.stringify(asked), /"enum":\["grace@example.com","hans@example.com"\]/);
  });

  test("an approver who is not allowed is refused", { timeout: 60_000 }, async () => {
    const mallory = { approver: "mallory@evil.example" };
    const tasks = countersign.tasks.size;
    for (const outcome of [await request(mallory, undefined, "@example.com"), await request({}, accept(mallory), "@example.com")]) {
      assert.deepEqual([outcome.isError, outcome.text], [true, "The settings of this server allow to ask: @example.com."]);
    }
    assert.equal(countersign.tasks.size, tasks);
    const { approval } = await request({ approver: "Grace@Example.com" }, undefined, "@example.com");
    assert.equal(approval.status, "pending");
  });
});
