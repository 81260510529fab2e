// Compiles the client of ../js into this package, which so has no dependencies.
"use strict";
const { spawnSync } = require("node:child_process");
const { existsSync, readFileSync, readdirSync, rmSync, writeFileSync } = require("node:fs");
const { join } = require("node:path");

const root = join(__dirname, "..");
const js = join(root, "..", "js");
const client = join(root, "client");

const tsc = join(js, "node_modules", "typescript", "bin", "tsc");
if (!existsSync(tsc)) run("npm", ["ci", "--ignore-scripts"]);
rmSync(client, { recursive: true, force: true });
run(process.execPath, [tsc, "--project", ".", "--outDir", client, "--declaration", "false"]);
writeFileSync(join(client, "package.json"), '{\n  "type": "module"\n}\n');
// The client chooses Node's WebCrypto by its own package.json.
for (const name of readdirSync(client)) {
  const path = join(client, name);
  writeFileSync(path, readFileSync(path, "utf8").replace('from "#webcrypto"', 'from "./webcrypto-node.js"'));
}
rmSync(join(client, "webcrypto.js"));

/** Runs a program in ../js. */
function run(program, args) {
  const { status } = spawnSync(program, args, { cwd: js, stdio: ["ignore", 2, 2] });
  if (status !== 0) process.exit(1);
}
