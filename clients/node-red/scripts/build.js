// Compiles the client of ../js into this package, which so has no dependencies.
"use strict";
const { spawnSync } = require("node:child_process");
const { existsSync, rmSync, writeFileSync } = require("node:fs");
const { join } = require("node:path");

const root = join(__dirname, "..");
const js = join(root, "..", "js");
const client = join(root, "client");

const tsc = join(js, "node_modules", "typescript", "bin", "tsc");
if (!existsSync(tsc)) run("npm", ["ci", "--ignore-scripts"]);
rmSync(client, { recursive: true, force: true });
run(process.execPath, [tsc, "--project", ".", "--outDir", client, "--declaration", "false"]);
const description = { private: true, type: "module", imports: { "#webcrypto": "./webcrypto-node.js" } };
writeFileSync(join(client, "package.json"), `${JSON.stringify(description, null, 2)}\n`);

/** Runs a program in ../js. */
function run(program, args) {
  const { status } = spawnSync(program, args, { cwd: js, stdio: ["ignore", 2, 2] });
  if (status !== 0) process.exit(1);
}
