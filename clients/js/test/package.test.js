import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { existsSync } from "node:fs";
import { mkdtemp, readFile, readdir, rm, writeFile } from "node:fs/promises";
import { createServer } from "node:http";
import { tmpdir } from "node:os";
import { extname, join, normalize } from "node:path";
import { after, before, test } from "node:test";
import { promisify } from "node:util";

import { DOCUMENT } from "../scripts/document.js";
import { FakeServer } from "./support/server.js";

const root = new URL("..", import.meta.url).pathname;
const run = promisify(execFile);
const chromium = ["/usr/bin/chromium", "/usr/bin/chromium-browser", "/usr/bin/google-chrome"].find((path) => existsSync(path));
let folder;
let server;

/** Asks, verifies a call by the published key, and says what came of it. */
const PROGRAM = `
import { Countersign, VERSION, VerificationError } from "@countersign/client";
export async function main(url, headers, body) {
  const client = new Countersign({ url, key: "csk_test" });
  const decision = await client.ask({ title: "Ship order 4711", approver: "grace@example.com" });
  const call = await client.verify(headers, body);
  const forged = await client.verify(headers, body + " ").catch((error) => error);
  return [decision.status, call.body.status, forged instanceof VerificationError, VERSION].join(" ");
}
`;

async function signedCall() {
  const { sign } = await import("node:crypto");
  const body = JSON.stringify({ status: "approved" });
  const time = String(Math.floor(Date.now() / 1000));
  const signature = sign(null, Buffer.from(`msg_1.${time}.${body}`), server.addKey()).toString("base64");
  return [{ "webhook-id": "msg_1", "webhook-timestamp": time, "webhook-signature": `v1a,${signature}` }, body];
}

/** Approves every task. */
function approveAll() {
  const timer = setInterval(() => {
    for (const task of server.tasks.values()) server.end(task.id, "approved");
  }, 20);
  return () => clearInterval(timer);
}

before(async () => {
  server = await new FakeServer().start();
  folder = await mkdtemp(join(tmpdir(), "countersign-client-"));
  await run("npm", ["pack", "--silent", "--ignore-scripts", "--pack-destination", folder], { cwd: root });
  const [tarball] = await readdir(folder);
  await writeFile(join(folder, "package.json"), '{"private": true, "type": "module"}');
  await run("npm", ["install", "--offline", "--no-audit", "--no-fund", join(folder, tarball)], { cwd: folder });
  await writeFile(join(folder, "program.js"), PROGRAM);
});
after(async () => {
  await server.stop();
  await rm(folder, { recursive: true, force: true });
});

const version = async () => JSON.parse(await readFile(join(root, "package.json"), "utf8")).version;
const expected = async () => `approved approved true ${await version()}`;

/** Runs the program by a command, which gets a file. */
async function runsWith(command, ...args) {
  const stop = approveAll();
  try {
    const call = JSON.stringify([server.url, ...(await signedCall())]);
    const text = `import { main } from "./program.js";\nconsole.log(await main(...${call}));\n`;
    await writeFile(join(folder, "main.js"), text);
    const { stdout } = await run(command, [...args, "main.js"], { cwd: folder, timeout: 60_000 });
    assert.equal(stdout.trim(), await expected());
  } finally {
    stop();
  }
}

test("the package has what it needs, and nothing else", async () => {
  const names = await readdir(join(folder, "node_modules", "@countersign", "client"), { recursive: true });
  const files = names.filter((name) => extname(name) !== "" || /LICENSE/.test(name)).sort();
  const others = files.filter((name) => !name.startsWith("dist/"));
  assert.deepEqual(others, ["CHANGELOG.md", "LICENSE-APACHE", "LICENSE-MIT", "README.md", "package.json"]);
  assert.ok(files.includes("dist/index.d.ts"));
  const description = JSON.parse(await readFile(join(folder, "node_modules", "@countersign", "client", "package.json"), "utf8"));
  assert.equal(description.dependencies, undefined);
});

test("its version is the product's, and that of the document", async () => {
  const { VERSION } = await import("@countersign/client");
  const cargo = await readFile(join(root, "..", "..", "Cargo.toml"), "utf8");
  const document = JSON.parse(await readFile(DOCUMENT, "utf8"));
  const all = [VERSION, cargo.match(/^version = "(.+)"$/m)[1], document.info.version, (await version())];
  assert.deepEqual(new Set(all), new Set([VERSION]));
});

test("it is installed in an empty folder, and asks with Node", () => runsWith(process.execPath));

test("the example of the README runs", async () => {
  const readme = await readFile(join(folder, "node_modules", "@countersign", "client", "README.md"), "utf8");
  const [, example] = readme.match(/```js\n(.*?)```/s);
  await writeFile(join(folder, "example.js"), example.replace("https://countersign.example.com", server.url));
  const stop = approveAll();
  const env = { ...process.env, COUNTERSIGN_KEY: server.key };
  const { stdout } = await run(process.execPath, ["example.js"], { cwd: folder, env, timeout: 30_000 }).finally(stop);
  assert.equal(stdout, "grace@example.com approved Ship order 4711\n");
});

const node18 = process.env.NODE18;
test("it asks with Node 18", { skip: !node18 && "NODE18 does not name a Node 18" }, () => runsWith(node18));

const deno = process.env.DENO;
test("it asks with Deno", { skip: !deno && "DENO does not name a Deno" }, () => runsWith(deno, "run", "--quiet", "--no-remote", "--node-modules-dir=manual", "--allow-net=127.0.0.1", "--allow-read", "--allow-env"));

test("it asks in a browser", { skip: !chromium && "Chromium is not installed" }, async () => {
  const call = JSON.stringify(["", ...(await signedCall())]);
  // A page, the package, and the server at the same origin.
  const page = `<script type="importmap">{"imports": {"@countersign/client": "/package/dist/index.js", "#webcrypto": "/package/dist/webcrypto.js"}}</script>
    <script type="module">
      import { main } from "/program.js";
      const [, headers, body] = ${call};
      const text = await main(location.origin + "/api", headers, body).catch((error) => error.name + " " + error.message + " " + error.cause);
      await fetch("/report", { method: "POST", body: text });
    </script>`;
  let report;
  const reported = new Promise((resolve) => (report = resolve));
  const site = createServer(async (request, response) => {
    const { pathname } = new URL(request.url, "http://localhost");
    if (pathname === "/") return response.writeHead(200, { "content-type": "text/html" }).end(page);
    if (pathname === "/report") {
      let text = "";
      for await (const part of request) text += part;
      response.end();
      return report(text);
    }
    if (pathname.startsWith("/api/")) return forward(request, response);
    const path = pathname.replace(/^\/package\//, "node_modules/@countersign/client/");
    const file = await readFile(join(folder, normalize(path))).catch(() => undefined);
    response.writeHead(file ? 200 : 404, { "content-type": "text/javascript" }).end(file);
  });
  await new Promise((resolve) => site.listen(0, "127.0.0.1", resolve));
  const stop = approveAll();
  const profile = await mkdtemp(join(tmpdir(), "countersign-browser-"));
  const flags = ["--headless", "--no-sandbox", "--disable-gpu", "--no-first-run", `--user-data-dir=${profile}`, "--remote-debugging-port=0"];
  const browser = execFile(chromium, [...flags, `http://127.0.0.1:${site.address().port}/`]);
  const timer = setTimeout(() => report("the browser did not report"), 60_000);
  try {
    assert.equal(await reported, await expected());
    const agents = server.calls(/POST \/people-task\/tasks/).map((call) => call.headers["user-agent"]);
    assert.match(agents.at(-1), /Mozilla/);
  } finally {
    clearTimeout(timer);
    stop();
    const ended = new Promise((resolve) => browser.once("exit", resolve));
    browser.kill("SIGKILL");
    await ended;
    site.closeAllConnections();
    await new Promise((resolve) => site.close(resolve));
    await rm(profile, { recursive: true, force: true, maxRetries: 5 });
  }
});

/** Passes a call on to the server. */
async function forward(request, response) {
  let body = "";
  for await (const part of request) body += part;
  const { authorization, "content-type": type, "idempotency-key": key, "user-agent": agent } = request.headers;
  const headers = { ...(authorization && { authorization }), ...(type && { "content-type": type }), ...(key && { "idempotency-key": key }), "user-agent": agent };
  const answer = await fetch(server.url + request.url.slice(4), { method: request.method, headers, ...(body && { body }) });
  response.writeHead(answer.status, { "content-type": answer.headers.get("content-type") }).end(await answer.text());
}
