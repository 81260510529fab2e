// What TypeScript accepts and refuses. `npm run lint` compiles it.
import {
  Countersign,
  type Approval,
  type Decision,
  type NewWebhook,
  ProblemError,
  RejectedError,
  type Task,
  type VerifiedCall,
  type components,
  verify,
} from "@countersign/client";

const client = new Countersign({ url: "https://countersign.example.com", key: "csk_…", timeout: 5 });

export async function use(headers: Headers, body: Uint8Array): Promise<void> {
  const approval: Approval = await client.ask({ title: "Ship it", approver: "grace@example.com", decisionBy: new Date() });
  const approved: "approved" = approval.status;
  const decision: Decision = await client.wait(approval.id, { timeout: 5, include: ["metadata"] });
  // @ts-expect-error a decision is not pending
  const pending: "pending" = decision.status;
  // @ts-expect-error the approver is missing
  await client.ask({ title: "Ship it" });
  // @ts-expect-error there is no such field
  await client.ask({ title: "Ship it", approver: "grace@example.com", aprover: "x" });
  // @ts-expect-error there is no such field of tasks
  await client.get(approval.id, { include: ["approverSecret"] });

  const webhook: NewWebhook = { url: "https://engine.example.com", events: ["approved", "cancelled"], success: { pointer: "" } };
  const created = await client.create({ title: "Ship it", approver: "grace@example.com", webhooks: [webhook], metadata: { order: 1 } });
  const link: string = client.linkFor(created);
  // @ts-expect-error only a new task has the secret
  client.linkFor(await client.get(created.id));
  // @ts-expect-error there is no such event
  await client.webhooks.register(created.id, { url: "https://engine.example.com", events: ["asked"] });

  const tasks: Task[] = [];
  for await (const task of client.tasks({ status: "pending", sort: "title:1" })) tasks.push(task);
  // @ts-expect-error there is no such status
  client.tasks({ status: "done" });

  const call: VerifiedCall = await client.verify(headers, body);
  const own: VerifiedCall<{ order: number }> = await verify<{ order: number }>(headers, body, { secret: "whsec_…" });
  if (call.body.status === "due" || own.body.order > 0) return;
  // @ts-expect-error the raw body is needed
  await client.verify(headers, { status: "approved" });
  void [approved, pending, link];
}

export function tell(error: unknown): string | null {
  if (error instanceof RejectedError) return error.comment;
  return error instanceof ProblemError ? error.detail : null;
}

/** The names of earlier versions. */
export function messagesOf(problem: components["schemas"]["PeopleTaskProblem"]): string[] {
  const errors: components["schemas"]["PeopleTaskFieldError"][] = problem.errors ?? [];
  return errors.map((error) => error.message);
}
