#!/usr/bin/env node
import { StdioServerTransport } from "@modelcontextprotocol/sdk/server/stdio.js";

import { makeServer } from "./server.ts";
import { readSettings, SettingsError } from "./settings.ts";

/** Says what is wrong with the settings, and ends with 2. */
function refuse(error: unknown): never {
  if (!(error instanceof SettingsError)) throw error;
  console.error(`countersign-mcp: ${error.message}`);
  process.exit(2);
}

function settings() {
  try {
    return readSettings(process.env);
  } catch (error) {
    return refuse(error);
  }
}

const server = makeServer(settings());
// The client has gone when its end of the pipe is closed.
process.stdin.on("end", () => process.exit(0));
process.stdout.on("error", () => process.exit(0));
await server.connect(new StdioServerTransport());
