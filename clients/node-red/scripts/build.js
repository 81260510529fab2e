// Copies the compiled client of ../js into this package, which so has no dependencies.
"use strict";
const { spawnSync } = require("node:child_process");
const { cpSync, existsSync, rmSync, writeFileSync } = require("node:fs");
const { join } = require("node:path");

const root = join(__dirname, "..");
const js = join(root, "..", "js");

if (!existsSync(join(js, "node_modules", "typescript"))) run("npm", ["ci", "--ignore-scripts"]);
run(process.execPath, ["scripts/build.js"]);

const client = join(root, "client");
rmSync(client, { recursive: true, force: true });
cpSync(join(js, "dist"), client, { recursive: true, filter: (path) => !path.endsWith(".d.ts") });
const description = { private: true, type: "module", imports: { "#webcrypto": "./webcrypto-node.js" } };
writeFileSync(join(client, "package.json"), `${JSON.stringify(description, null, 2)}\n`);

function run(program, args) {
  const { status } = spawnSync(program, args, { cwd: js, stdio: ["ignore", 2, 2] });
  if (status !== 0) process.exit(1);
}
