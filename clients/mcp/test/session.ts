import { PassThrough } from "node:stream";
import { fileURLToPath } from "node:url";

import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { StdioClientTransport } from "@modelcontextprotocol/sdk/client/stdio.js";
import type { ClientCapabilities, ElicitRequest, ElicitResult } from "@modelcontextprotocol/sdk/types.js";
import { ElicitRequestSchema } from "@modelcontextprotocol/sdk/types.js";

/** The built program, as it is published. */
export const PROGRAM = fileURLToPath(new URL("../dist/main.js", import.meta.url));

export interface Outcome {
  isError: boolean;
  text: string;
  /** The structured content; empty after an error. */
  approval: Record<string, unknown>;
}

/** A client of the SDK that runs the built program over stdio, and records what it says. */
export class Session {
  /** All that the program has written: messages and the log. */
  heard = "";
  asked: ElicitRequest["params"][] = [];
  private constructor(readonly client: Client) {}

  static async open(
    settings: Record<string, string>,
    fillIn?: (asked: ElicitRequest["params"]) => ElicitResult,
  ): Promise<Session> {
    const capabilities: ClientCapabilities = fillIn ? { elicitation: {} } : {};
    const client = new Client({ name: "test", version: "1" }, { capabilities });
    const session = new Session(client);
    if (fillIn) {
      client.setRequestHandler(ElicitRequestSchema, ({ params }) => {
        session.asked.push(params);
        return fillIn(params);
      });
    }
    const env = { PATH: process.env.PATH ?? "", ...settings };
    const transport = new StdioClientTransport({ command: process.execPath, args: [PROGRAM], env, stderr: "pipe" });
    (transport.stderr as PassThrough).on("data", (chunk) => (session.heard += chunk));
    await client.connect(transport);
    const receive = transport.onmessage;
    transport.onmessage = (message) => {
      session.heard += JSON.stringify(message);
      receive?.(message);
    };
    return session;
  }

  async call(
    name: string,
    given: Record<string, unknown>,
    options: { signal?: AbortSignal; onprogress?: () => void } = {},
  ): Promise<Outcome> {
    const result = await this.client.callTool({ name, arguments: given }, undefined, { timeout: 90_000, ...options });
    const [first] = result.content as { type: string; text: string }[];
    return {
      isError: result.isError === true,
      text: first?.text ?? "",
      approval: (result.structuredContent ?? {}) as Record<string, unknown>,
    };
  }

  async close(): Promise<void> {
    await this.client.close();
  }
}
