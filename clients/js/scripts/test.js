// Builds the package and runs its tests. Arguments name test files.
import { spawnSync } from "node:child_process";
import { readdirSync } from "node:fs";

const root = new URL("..", import.meta.url);
const run = (...args) => spawnSync(process.execPath, args, { cwd: root, stdio: "inherit" }).status ?? 1;
const all = readdirSync(new URL("test", root)).filter((name) => name.endsWith(".test.js"));
const files = process.argv.length > 2 ? process.argv.slice(2) : all.map((name) => `test/${name}`);
process.exitCode = run("scripts/build.js") || run("--test", ...files);
