import assert from "node:assert/strict";
import { createHmac, sign } from "node:crypto";
import { afterEach, beforeEach, test } from "node:test";

import { Countersign, VerificationError, newWebhookSecret, verify } from "@countersign/client";

import { FakeServer, answer } from "./support/server.js";

const SECRET = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";
const body = JSON.stringify({ id: "a1", status: "approved", title: "Größe \\/ 🪑" });
const keysPath = /webhook-keys/;
const now = () => Math.floor(Date.now() / 1000);

/** The headers of a call. `signers` are secrets and private keys. */
function headersOf({ id = "msg_1", time = now(), text = body, signers, more = {} }) {
  const signed = `${id}.${time}.${text}`;
  const signatures = signers.map((signer) =>
    typeof signer === "string"
      ? `v1,${createHmac("sha256", Buffer.from(signer.slice(6), "base64")).update(signed).digest("base64")}`
      : `v1a,${sign(null, Buffer.from(signed), signer).toString("base64")}`,
  );
  return { "webhook-id": id, "webhook-timestamp": String(time), "webhook-signature": signatures.join(" "), ...more };
}

let server;
let client;
beforeEach(async () => {
  server = await new FakeServer().start();
  client = new Countersign({ url: server.url });
});
afterEach(() => server.stop());

test("the example of the specification verifies", async () => {
  const headers = {
    "webhook-id": "msg_p5jXN8AQM9LWM0D4loKWxJek",
    "webhook-timestamp": "1614265330",
    "webhook-signature": "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=",
  };
  const call = await verify(headers, '{"test": 2432232314}', { secret: SECRET, tolerance: 1e12 });
  assert.deepEqual([call.id, call.timestamp.getTime(), call.body], ["msg_p5jXN8AQM9LWM0D4loKWxJek", 1614265330000, { test: 2432232314 }]);
});

test("headers and bodies come in every form that servers have them", async () => {
  const plain = headersOf({ signers: [SECRET], more: { "webhook-test": "true" } });
  const upper = Object.fromEntries(Object.entries(plain).map(([name, value]) => [name.toUpperCase(), [value]]));
  for (const headers of [plain, upper, new Headers(plain), Object.entries(plain), new Map(Object.entries(plain))]) {
    for (const raw of [body, Buffer.from(body), new TextEncoder().encode(body), new TextEncoder().encode(body).buffer]) {
      const call = await verify(headers, raw, { secret: SECRET });
      assert.deepEqual([call.id, call.isTest, call.body], ["msg_1", true, JSON.parse(body)]);
    }
  }
  const [first, second] = [newWebhookSecret(), newWebhookSecret()];
  assert.notEqual(first, second);
  assert.equal((await verify(headersOf({ signers: [second] }), body, { secret: [first, second] })).isTest, false);
});

test("a call that is forged in any part is refused", async () => {
  const good = headersOf({ signers: [SECRET] });
  const [signature] = [good["webhook-signature"]];
  const cases = [
    [good, body.replace("approved", "rejected"), "no-valid-signature"],
    [good, `${body} `, "no-valid-signature"],
    [{ ...good, "webhook-id": "msg_2" }, body, "no-valid-signature"],
    [{ ...good, "webhook-timestamp": String(now() - 1) }, body, "no-valid-signature"],
    [{ ...good, "webhook-timestamp": "soon" }, body, "invalid-timestamp"],
    [{ ...good, "webhook-timestamp": "1e9" }, body, "invalid-timestamp"],
    [headersOf({ signers: [SECRET], time: now() - 301 }), body, "timestamp-out-of-range"],
    [headersOf({ signers: [SECRET], time: now() + 302 }), body, "timestamp-out-of-range"],
    [{ ...good, "webhook-signature": signature.replace("v1,", "v2,") }, body, "no-valid-signature"],
    [{ ...good, "webhook-signature": signature.replace("v1,", "v1a,") }, body, "no-valid-signature"],
    [{ ...good, "webhook-signature": "v1,@@@ v1 , v1," }, body, "no-valid-signature"],
    [{ ...good, "webhook-signature": `${"v1,AAAA ".repeat(16)}${signature}` }, body, "no-valid-signature"],
    [{ ...good, "webhook-signature": "" }, body, "missing-header"],
    [{ ...good, "webhook-signature": [signature, signature] }, body, "missing-header"],
    [{ ...good, "webhook-id": undefined }, body, "missing-header"],
    [headersOf({ signers: [newWebhookSecret()] }), body, "no-valid-signature"],
    [headersOf({ signers: [SECRET], text: "no JSON" }), "no JSON", "invalid-body"],
  ];
  for (const [headers, text, code] of cases) {
    const error = await verify(headers, text, { secret: SECRET }).catch((error) => error);
    assert.ok(error instanceof VerificationError, JSON.stringify(headers));
    assert.equal(error.code, code, JSON.stringify(headers));
  }
});

test("wrong uses are errors that do not show the secret", async () => {
  const headers = headersOf({ signers: [SECRET] });
  await assert.rejects(verify(headers, JSON.parse(body), { secret: SECRET }), TypeError);
  for (const secret of [undefined, "", [], "whsec_c2hvcnQ=", "MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw", "whsec_?"]) {
    await assert.rejects(verify(headers, body, { secret }), (error) => error instanceof TypeError && !error.message.includes("MfKQ"));
  }
});

test("the published keys are fetched once and kept", async () => {
  const key = server.addKey();
  const calls = Array.from({ length: 20 }, (_, n) => client.verify(headersOf({ id: `msg_${n}`, signers: [key] }), body));
  const verified = await Promise.all(calls);
  assert.deepEqual(verified.map((call) => call.id), calls.map((_, n) => `msg_${n}`));
  await client.verify(headersOf({ signers: [SECRET, key] }), body);
  assert.equal(server.calls(keysPath).length, 1);
  assert.equal(server.calls(keysPath)[0].headers.authorization, undefined);
});

test("forged calls do not make the keys be fetched more than once a minute", async (t) => {
  server.addKey();
  const stranger = new FakeServer().addKey();
  const forged = () => client.verify(headersOf({ signers: [stranger] }), body);
  for (let n = 0; n < 5; n++) await assert.rejects(forged(), { code: "no-valid-signature" });
  await assert.rejects(client.verify(headersOf({ signers: [SECRET] }), body), { code: "no-valid-signature" });
  assert.equal(server.calls(keysPath).length, 1);
  const clock = performance.now.bind(performance);
  t.mock.method(performance, "now", () => clock() + 61_000);
  for (let n = 0; n < 5; n++) await assert.rejects(forged(), { code: "no-valid-signature" });
  assert.equal(server.calls(keysPath).length, 2);
});

test("a new key is found, and an old one ends", async (t) => {
  const old = server.addKey();
  await client.verify(headersOf({ signers: [old] }), body);
  const clock = performance.now.bind(performance);
  t.mock.method(performance, "now", () => clock() + 61_000);
  const fresh = server.addKey();
  await client.verify(headersOf({ signers: [fresh] }), body);
  server.keys.shift();
  t.mock.method(performance, "now", () => clock() + 2 * 3600_000);
  await assert.rejects(client.verify(headersOf({ signers: [old] }), body), { code: "no-valid-signature" });
  await client.verify(headersOf({ signers: [fresh] }), body);
});

test("a call cannot be judged while there are no keys, which is no forgery", async (t) => {
  const key = server.addKey();
  server.plan(keysPath, ...Array(3).fill(answer(404, "not-found")));
  for (let n = 0; n < 3; n++) await assert.rejects(client.verify(headersOf({ signers: [key] }), body), { code: "not-found" });
  await client.verify(headersOf({ signers: [key] }), body);
  const clock = performance.now.bind(performance);
  t.mock.method(performance, "now", () => clock() + 2 * 3600_000);
  server.plan(keysPath, answer(404, "not-found"));
  assert.ok(await client.verify(headersOf({ signers: [key] }), body), "the keys that are known stay in use");
  const stranger = new FakeServer().addKey();
  await assert.rejects(client.verify(headersOf({ signers: [stranger] }), body), { code: "not-found" });
  t.mock.method(performance, "now", () => clock() + 25 * 3600_000);
  server.plan(keysPath, answer(404, "not-found"));
  await assert.rejects(client.verify(headersOf({ signers: [key] }), body), { code: "not-found" }, "but not for ever");
});

test("keys of other kinds are passed over", async () => {
  const key = server.addKey();
  server.keys.unshift(null, {}, { kty: "RSA", n: "AQAB", e: "AQAB" }, { kty: "OKP", crv: "Ed25519", x: "AAAA" }, { kty: "OKP", crv: "X25519", x: server.keys[0].x });
  assert.equal((await client.verify(headersOf({ signers: [key] }), body)).body.status, "approved");
});

test("with a secret no key is fetched", async () => {
  assert.equal((await client.verify(headersOf({ signers: [SECRET] }), body, { secret: SECRET })).id, "msg_1");
  assert.equal(server.requests.length, 0);
});
