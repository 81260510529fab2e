import assert from "node:assert/strict";
import { execFile, spawn } from "node:child_process";
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";

import { FakeCountersign, KEY } from "./fake-countersign.ts";
import { PROGRAM, Session } from "./session.ts";

const run = promisify(execFile);
const folder = fileURLToPath(new URL("..", import.meta.url));

/** Runs the program with its standard input closed. */
async function start(settings: Record<string, string>): Promise<{ code: number | null; stderr: string; stdout: string }> {
  const child = spawn(process.execPath, [PROGRAM], { env: settings, stdio: ["ignore", "pipe", "pipe"] });
  let [stderr, stdout] = ["", ""];
  child.stderr.on("data", (chunk) => (stderr += chunk));
  child.stdout.on("data", (chunk) => (stdout += chunk));
  const code = await new Promise<number | null>((resolve) => child.on("close", resolve));
  return { code, stderr, stdout };
}

describe("the program", () => {
  const url = "http://127.0.0.1:9";
  const wrong: [string, Record<string, string>, RegExp][] = [
    ["no address", { COUNTERSIGN_KEY: KEY }, /Set COUNTERSIGN_URL/],
    ["no key", { COUNTERSIGN_URL: url }, /Set COUNTERSIGN_KEY/],
    ["the token of a user", { COUNTERSIGN_URL: url, COUNTERSIGN_KEY: "eyJhbGciOi.secret" }, /must be an API key/],
    ["a password in the address", { COUNTERSIGN_URL: "http://ada:secret@h", COUNTERSIGN_KEY: KEY }, /without a password/],
    ["another scheme", { COUNTERSIGN_URL: "file:///etc/passwd", COUNTERSIGN_KEY: KEY }, /must begin with https/],
    ["a file that is not there", { COUNTERSIGN_URL: url, COUNTERSIGN_KEY_FILE: "/secret" }, /cannot be read/],
    ["two keys", { COUNTERSIGN_URL: url, COUNTERSIGN_KEY: KEY, COUNTERSIGN_KEY_FILE: "/secret" }, /not both/],
    ["no approvers", { COUNTERSIGN_URL: url, COUNTERSIGN_KEY: KEY, COUNTERSIGN_APPROVERS: "grace" }, /COUNTERSIGN_APPROVERS/],
    ["unknown deciders", { COUNTERSIGN_URL: url, COUNTERSIGN_KEY: KEY, COUNTERSIGN_DECIDERS: "all" }, /COUNTERSIGN_DECIDERS/],
    ["neither true nor false", { COUNTERSIGN_URL: url, COUNTERSIGN_KEY: KEY, COUNTERSIGN_NOTIFY: "1" }, /COUNTERSIGN_NOTIFY/],
  ];
  for (const [name, settings, message] of wrong) {
    test(`${name} is refused at the start, without telling a value`, async () => {
      const { code, stderr, stdout } = await start(settings);
      assert.equal(code, 2);
      assert.match(stderr, message);
      assert.doesNotMatch(stderr, /secret|csk_\w|passwd/);
      assert.equal(stdout, "");
    });
  }

  test("it ends when its client has gone", async () => {
    const { code, stderr } = await start({ COUNTERSIGN_URL: url, COUNTERSIGN_KEY: KEY });
    assert.deepEqual([code, stderr], [0, ""]);
  });

  test("its version is that of the product", { skip: !existsSync(`${folder}/../../Cargo.toml`) }, () => {
    const product = /^version = "(.+)"$/m.exec(readFileSync(`${folder}/../../Cargo.toml`, "utf8"))?.[1];
    const { version } = JSON.parse(readFileSync(`${folder}/package.json`, "utf8")) as { version: string };
    assert.equal(version, product);
    assert.match(readFileSync(`${folder}/CHANGELOG.md`, "utf8"), new RegExp(`^## ${version.replaceAll(".", "\\.")}$`, "m"));
  });
});

describe("the program and a real HTTP server", () => {
  let countersign: FakeCountersign;
  before(async () => void (countersign = await new FakeCountersign().start()));
  after(() => countersign.stop());

  test("the key may be in a file", async () => {
    const place = mkdtempSync(join(tmpdir(), "countersign-mcp-"));
    const file = join(place, "key");
    writeFileSync(file, `${KEY}\n`, { mode: 0o600 });
    const session = await Session.open({ COUNTERSIGN_URL: `${countersign.url}/`, COUNTERSIGN_KEY_FILE: file });
    const { approval } = await session.call("request_approval", { title: "Buy a chair", approver: "grace@example.com" });
    await session.close();
    rmSync(place, { recursive: true });
    assert.equal(approval.status, "pending");
  });

  /** Runs the command line of the MCP inspector. */
  async function inspect(...given: string[]): Promise<Record<string, unknown>> {
    const inspector = join(folder, "node_modules/.bin/mcp-inspector");
    const environment = { ...process.env, COUNTERSIGN_URL: countersign.url, COUNTERSIGN_KEY: KEY };
    const settings = ["-e", `COUNTERSIGN_URL=${countersign.url}`, "-e", `COUNTERSIGN_KEY=${KEY}`];
    const { stdout } = await run(inspector, ["--cli", ...settings, process.execPath, PROGRAM, ...given], {
      env: environment,
      timeout: 60_000,
    });
    assert.ok(!stdout.includes(KEY));
    return JSON.parse(stdout) as Record<string, unknown>;
  }

  test("the inspector lists the tools and calls one", async () => {
    const { tools } = (await inspect("--method", "tools/list")) as { tools: { name: string; outputSchema: unknown }[] };
    assert.equal(tools.length, 4);
    assert.ok(tools.every(({ outputSchema }) => outputSchema));
    const call = ["--method", "tools/call", "--tool-name", "request_approval"];
    const result = await inspect(...call, "--tool-arg", "title=Buy a chair", "--tool-arg", "approver=grace@example.com");
    const { id } = result.structuredContent as { id: string };
    assert.equal(countersign.tasks.get(id)?.title, "Buy a chair");
  });
});
