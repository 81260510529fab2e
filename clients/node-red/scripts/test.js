// Builds the package and runs its tests in a real Node-RED. Arguments name test files.
"use strict";
const { spawnSync } = require("node:child_process");
const { readdirSync } = require("node:fs");
const { join } = require("node:path");

const root = join(__dirname, "..");
const run = (...args) => spawnSync(process.execPath, args, { cwd: root, stdio: "inherit" }).status ?? 1;
const all = readdirSync(join(root, "test")).filter((name) => name.endsWith(".test.js"));
const files = process.argv.length > 2 ? process.argv.slice(2) : all.map((name) => `test/${name}`);
process.exitCode = run("scripts/build.js") || run("--test", ...files);
