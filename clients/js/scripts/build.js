// Compiles src into dist.
import { spawnSync } from "node:child_process";
import { rmSync } from "node:fs";
import { createRequire } from "node:module";

const root = new URL("..", import.meta.url);
rmSync(new URL("dist", root), { recursive: true, force: true });
const tsc = createRequire(import.meta.url).resolve("typescript/bin/tsc");
process.exitCode = spawnSync(process.execPath, [tsc, "--project", "."], { cwd: root, stdio: "inherit" }).status ?? 1;
