// A page in a headless Chromium, over its DevTools protocol.
"use strict";
const { spawn } = require("node:child_process");
const { existsSync } = require("node:fs");
const { mkdtemp, rm, writeFile } = require("node:fs/promises");
const { tmpdir } = require("node:os");
const { join } = require("node:path");
const WebSocket = require("ws");

const chromium = ["/usr/bin/chromium", "/usr/bin/chromium-browser", "/usr/bin/google-chrome"].find((path) => existsSync(path));

class Page {
  /** The errors that the page has not handled. */
  errors = [];
  #browser;
  #profile;
  #socket;
  #session;
  #last = 0;
  #calls = new Map();

  static async open(url) {
    const page = new Page();
    page.#profile = await mkdtemp(join(tmpdir(), "countersign-browser-"));
    const flags = ["--headless", "--no-sandbox", "--disable-gpu", "--no-first-run", "--window-size=1400,1000", `--user-data-dir=${page.#profile}`, "--remote-debugging-port=0"];
    page.#browser = spawn(chromium, [...flags, "about:blank"], { stdio: ["ignore", "ignore", "pipe"] });
    await page.#connect(await page.#address());
    const { targetId } = await page.#send("Target.createTarget", { url: "about:blank" });
    ({ sessionId: page.#session } = await page.#send("Target.attachToTarget", { targetId, flatten: true }));
    for (const domain of ["Runtime", "Page"]) await page.#send(`${domain}.enable`);
    await page.#send("Page.navigate", { url });
    return page;
  }

  /** The value of an expression, or of its promise. */
  async evaluate(expression) {
    const { result, exceptionDetails } = await this.#send("Runtime.evaluate", { expression, awaitPromise: true, returnByValue: true });
    if (exceptionDetails) throw new Error(exceptionDetails.exception?.description ?? exceptionDetails.text);
    return result.value;
  }

  /** Writes a picture of the page to a file. */
  async screenshot(path) {
    const { data } = await this.#send("Page.captureScreenshot", { format: "png" });
    await writeFile(path, Buffer.from(data, "base64"));
  }

  async close() {
    this.#socket?.terminate();
    const ended = new Promise((resolve) => this.#browser.once("exit", resolve));
    this.#browser.kill("SIGKILL");
    await ended;
    await rm(this.#profile, { recursive: true, force: true, maxRetries: 5 });
  }

  #address() {
    return new Promise((resolve, reject) => {
      let text = "";
      const timer = setTimeout(() => reject(new Error(`Chromium did not start:\n${text}`)), 30_000);
      this.#browser.stderr.on("data", (part) => {
        text += part;
        const found = text.match(/DevTools listening on (ws:\S+)/);
        if (!found) return;
        clearTimeout(timer);
        resolve(found[1]);
      });
    });
  }

  async #connect(address) {
    this.#socket = new WebSocket(address);
    await new Promise((resolve, reject) => this.#socket.once("open", resolve).once("error", reject));
    this.#socket.on("message", (data) => {
      const { id, method, params, result, error } = JSON.parse(data);
      if (method === "Runtime.exceptionThrown") this.errors.push(params.exceptionDetails.exception?.description ?? params.exceptionDetails.text);
      const call = this.#calls.get(id);
      this.#calls.delete(id);
      if (error) call?.reject(new Error(error.message));
      else call?.resolve(result);
    });
  }

  #send(method, params = {}) {
    const id = ++this.#last;
    this.#socket.send(JSON.stringify({ id, method, params, ...(this.#session && { sessionId: this.#session }) }));
    return new Promise((resolve, reject) => this.#calls.set(id, { resolve, reject }));
  }
}

module.exports = { Page, chromium };
