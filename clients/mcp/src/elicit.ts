import type { McpServer } from "@modelcontextprotocol/sdk/server/mcp.js";

import { ArgumentError } from "./approvals.ts";
import type { Settings } from "./settings.ts";

/** How long the user has to fill in the form, in seconds. */
const FORM_TIME = 600;

export interface Missing {
  approver: string;
  description?: string;
}

/**
 * Finds out whom to ask if the agent did not say: the only address that the settings allow, or what the user of the agent
 * enters. The form also takes the details if there are none. It never asks for the decision.
 */
export async function completeRequest(
  server: McpServer,
  settings: Settings,
  given: { title: string; description?: string | undefined },
  signal: AbortSignal,
): Promise<Missing> {
  const addresses = settings.approvers.filter((address) => !address.startsWith("@"));
  const [only] = addresses;
  if (settings.approvers.length === 1 && only !== undefined) return { approver: only };
  if (!server.server.getClientCapabilities()?.elicitation?.form) {
    const allowed = settings.approvers.length > 0 ? ` Allowed are: ${settings.approvers.join(", ")}.` : "";
    throw new ArgumentError(`\`approver\` is missing: ask your user who decides.${allowed}`);
  }
  const isChoice = addresses.length > 0 && addresses.length === settings.approvers.length;
  const approver = { type: "string" as const, title: "Approver", description: "Who decides: an e-mail address" };
  const details = { type: "string" as const, title: "Details", description: "What the approver should know", maxLength: 20_000 };
  const form = server.server.elicitInput(
    {
      message: `Who is to approve “${given.title}”?`,
      requestedSchema: {
        type: "object",
        properties: {
          approver: isChoice ? { ...approver, enum: addresses } : { ...approver, format: "email" as const },
          ...(given.description === undefined ? { description: details } : {}),
        },
        required: ["approver"],
      },
    },
    { timeout: FORM_TIME * 1000, signal },
  );
  const answer = await form.catch(() => {
    throw new ArgumentError("Your user could not be asked who decides. Nothing was requested.");
  });
  const content = answer.action === "accept" ? answer.content : undefined;
  if (typeof content?.approver !== "string") throw new ArgumentError("Your user did not say who decides. Nothing was requested.");
  const described = typeof content.description === "string" && content.description.trim() !== "";
  return { approver: content.approver, ...(described ? { description: String(content.description) } : {}) };
}
