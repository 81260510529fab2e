"use strict";
const assert = require("node:assert/strict");
const { readFileSync } = require("node:fs");
const { join } = require("node:path");
const { test } = require("node:test");

const root = join(__dirname, "..");
const { dependencies, "node-red": nodes, version } = require("../package.json");

test("its version is the product's, and that of the client in it", async () => {
  const { VERSION } = await import("../client/index.js");
  const cargo = readFileSync(join(root, "..", "..", "Cargo.toml"), "utf8");
  assert.deepEqual([version, VERSION], Array(2).fill(cargo.match(/^version = "(.+)"$/m)[1]));
});

test("it has no dependencies, and each node has its page", () => {
  assert.equal(dependencies, undefined);
  for (const [type, file] of Object.entries(nodes.nodes)) {
    const page = readFileSync(join(root, file.replace(/js$/, "html")), "utf8");
    for (const part of [`data-template-name="${type}"`, `data-help-name="${type}"`, `registerType("${type}"`]) {
      assert.ok(page.includes(part), `${file}: ${part}`);
    }
  }
});
