import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { cp, mkdtemp, readFile, rm, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";

import { DOCUMENT } from "../scripts/document.js";

const root = new URL("..", import.meta.url).pathname;

/** The exit code of the script in a folder. */
const run = (folder, ...args) =>
  new Promise((resolve) => execFile(process.execPath, [join(folder, "scripts", "generate.js"), ...args], (error) => resolve(error?.code ?? 0)));

test("the types are made from the document, and the check notices if they are not", async () => {
  assert.equal(await run(root, "--check"), 0);
  const copy = await mkdtemp(join(tmpdir(), "countersign-generate-"));
  try {
    for (const name of ["scripts", "src", "package.json"]) await cp(join(root, name), join(copy, name), { recursive: true });
    await symlink(join(root, "node_modules"), join(copy, "node_modules"));
    const file = join(copy, "openapi.json");
    const document = JSON.parse(await readFile(DOCUMENT, "utf8"));
    document.components.schemas.TaskResponse.properties.colour = { type: "string" };
    await writeFile(file, JSON.stringify(document));
    assert.equal(await run(copy, "--document", file, "--check"), 1);
    assert.equal(await run(copy, "--document", file), 0);
    assert.equal(await run(copy, "--document", file, "--check"), 0);
    assert.match(await readFile(join(copy, "src", "openapi.ts"), "utf8"), /colour\?: string/);
  } finally {
    await rm(copy, { recursive: true, force: true });
  }
});
