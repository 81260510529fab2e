// Starts real, headless Node-REDs that have the packed package installed.
"use strict";
const { execFile, spawn } = require("node:child_process");
const { cp, mkdir, mkdtemp, readFile, readdir, rm, writeFile } = require("node:fs/promises");
const { createServer } = require("node:net");
const { tmpdir } = require("node:os");
const { join } = require("node:path");
const { promisify } = require("node:util");

const root = join(__dirname, "..", "..");
const run = promisify(execFile);
let installed;

/** Packs the package and installs it into an empty folder, once. */
function install() {
  installed ??= (async () => {
    const folder = await mkdtemp(join(tmpdir(), "countersign-node-red-"));
    await run("npm", ["pack", "--silent", "--pack-destination", folder], { cwd: root });
    const [tarball] = (await readdir(folder)).filter((name) => name.endsWith(".tgz"));
    const userDir = join(folder, "installed");
    await mkdir(userDir);
    await writeFile(join(userDir, "package.json"), '{"private": true}');
    await run("npm", ["install", "--offline", "--no-audit", "--no-fund", join(folder, tarball)], { cwd: userDir });
    return { folder, userDir };
  })();
  return installed;
}

/** Removes what was installed. */
async function cleanUp() {
  if (installed) await rm((await installed).folder, { recursive: true, force: true });
}

async function freePort() {
  const server = createServer();
  await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address();
  await new Promise((resolve) => server.close(resolve));
  return port;
}

async function until(condition, what, seconds = 30) {
  for (const end = Date.now() + seconds * 1000; Date.now() < end; ) {
    if (await condition()) return;
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
  throw new Error(`${what} did not come true within ${seconds} s`);
}

class NodeRed {
  #process;
  #log = "";

  /** Makes a folder with these flows and credentials. */
  static async create(flows, credentials) {
    const { folder, userDir } = await install();
    const red = new NodeRed();
    red.userDir = await mkdtemp(join(folder, "user-"));
    await cp(userDir, red.userDir, { recursive: true });
    red.port = await freePort();
    const settings = `module.exports = { uiHost: "127.0.0.1", credentialSecret: "test", flowFile: "flows.json",
      logging: { console: { level: "info" } }, telemetry: { enabled: false }, editorTheme: { tours: false }, externalModules: { palette: { allowInstall: false } } };`;
    await writeFile(join(red.userDir, "settings.js"), settings);
    await writeFile(join(red.userDir, "flows.json"), "[]");
    await red.start();
    await red.deploy(flows, credentials);
    return red;
  }

  get url() {
    return `http://127.0.0.1:${this.port}`;
  }

  /** Everything that it has logged. */
  get log() {
    return this.#log;
  }

  async start() {
    const program = join(root, "node_modules", "node-red", "red.js");
    const begin = this.#log.length;
    this.#process = spawn(process.execPath, [program, "--userDir", this.userDir, "--port", this.port], { stdio: ["ignore", "pipe", "pipe"] });
    for (const stream of [this.#process.stdout, this.#process.stderr]) stream.on("data", (text) => (this.#log += text));
    await until(() => this.#log.slice(begin).includes("Started flows") || this.#process.exitCode !== null, "Node-RED's start", 60);
    if (this.#process.exitCode !== null) throw new Error(`Node-RED ended:\n${this.#log}`);
  }

  /** Sets the flows, as the button Deploy does. */
  async deploy(flows, credentials) {
    const starts = () => this.#log.split("Started flows").length;
    const before = starts();
    const body = JSON.stringify({ flows, ...(credentials && { credentials }) });
    const headers = { "content-type": "application/json", "Node-RED-API-Version": "v2", "Node-RED-Deployment-Type": "full" };
    const response = await fetch(`${this.url}/flows`, { method: "POST", headers, body, signal: AbortSignal.timeout(20_000) });
    if (!response.ok) throw new Error(`Deploy: ${response.status} ${await response.text()}\n${this.#log}`);
    await until(() => starts() > before, "the start of the flows");
  }

  /** Sends a message into the flow. */
  async send(message) {
    const headers = { "content-type": "application/json" };
    const response = await fetch(`${this.url}/in`, { method: "POST", headers, body: JSON.stringify(message), signal: AbortSignal.timeout(10_000) });
    if (!response.ok) throw new Error(`${response.status}\n${this.#log}`);
  }

  /** The texts of all files that it keeps for messages. */
  async kept() {
    const folder = join(this.userDir, "countersign");
    const names = await readdir(folder, { recursive: true }).catch(() => []);
    // One that is gone meanwhile is not kept any more.
    const gone = (error) => {
      if (error.code !== "ENOENT") throw error;
      return "";
    };
    const read = (name) => readFile(join(folder, name), "utf8").catch(gone);
    const texts = await Promise.all(names.filter((name) => name.endsWith(".json")).map(read));
    return texts.filter(Boolean);
  }

  /** Ends it: with SIGKILL at once. */
  async stop(signal = "SIGKILL") {
    const { exitCode, signalCode } = this.#process;
    if (exitCode !== null || signalCode !== null) return;
    const ended = new Promise((resolve) => this.#process.once("exit", resolve));
    this.#process.kill(signal);
    await ended;
  }
}

module.exports = { NodeRed, cleanUp, until };
