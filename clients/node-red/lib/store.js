"use strict";
const { randomUUID } = require("node:crypto");
const { mkdir, open, readFile, readdir, rename, unlink } = require("node:fs/promises");
const { join } = require("node:path");

/** The longest message that is kept, in bytes of JSON. */
const LONGEST = 16 * 1024 * 1024;

/**
 * Keeps the waiting messages of a node in files of their own, so that they are there after a restart. Only the user who runs
 * Node-RED can read them.
 */
class Store {
  #folder;

  /** @param userDir Node-RED's folder; without one, nothing is kept. */
  constructor(userDir, nodeId) {
    this.#folder = userDir && join(userDir, "countersign", nodeId.replace(/[^\w-]/g, "_"));
  }

  get isPersistent() {
    return Boolean(this.#folder);
  }

  /** Writes a record, so that it is on the disk or unchanged. */
  async save(record) {
    if (!this.#folder) return;
    const text = JSON.stringify(record);
    if (Buffer.byteLength(text) > LONGEST) throw new Error("The message is too long to be kept: more than 16 MiB as JSON.");
    await mkdir(this.#folder, { recursive: true, mode: 0o700 });
    const path = this.#path(record.id);
    const draft = `${path}.${randomUUID()}.tmp`;
    const file = await open(draft, "wx", 0o600);
    try {
      await file.writeFile(text);
      await file.sync();
    } finally {
      await file.close();
    }
    await rename(draft, path);
  }

  async remove(record) {
    if (!this.#folder) return;
    await unlink(this.#path(record.id)).catch(ignoreMissing);
  }

  /** The records of an earlier run, oldest first, and the names of files that cannot be read. */
  async load() {
    const names = this.#folder ? ((await readdir(this.#folder).catch(ignoreMissing)) ?? []) : [];
    const [records, unreadable] = [[], []];
    for (const name of names) {
      if (name.endsWith(".tmp")) await unlink(join(this.#folder, name)).catch(ignoreMissing);
      if (!name.endsWith(".json")) continue;
      try {
        records.push(JSON.parse(await readFile(join(this.#folder, name), "utf8")));
      } catch {
        unreadable.push(name);
      }
    }
    return { records: records.sort((a, b) => a.created - b.created), unreadable };
  }

  #path(id) {
    return join(this.#folder, `${id}.json`);
  }
}

function ignoreMissing(error) {
  if (error.code !== "ENOENT") throw error;
}

/** A message as it is kept: without the connection of an HTTP request, which does not outlive the process. */
function pack(message) {
  const { req, res, ...rest } = message;
  try {
    return JSON.parse(JSON.stringify(rest));
  } catch {
    throw new Error("The message cannot be kept until the decision: it has something that JSON cannot hold, such as a circle.");
  }
}

/** A message that was kept, with its buffers. */
function unpack(value) {
  if (Array.isArray(value)) return value.map(unpack);
  if (typeof value !== "object" || value === null) return value;
  if (value.type === "Buffer" && Array.isArray(value.data)) return Buffer.from(value.data);
  return Object.fromEntries(Object.entries(value).map(([name, part]) => [name, unpack(part)]));
}

module.exports = { Store, pack, unpack };
