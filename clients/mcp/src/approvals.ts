import { randomUUID } from "node:crypto";
import { setTimeout as sleep } from "node:timers/promises";

import { type Api, ApiError, LONGEST_WAIT, type NewTask, type Task } from "./api.ts";
import type { Settings } from "./settings.ts";

/** What the agent is told about a request. It has no secret, and its link decides nothing without signing in. */
export interface Approval {
  id: string;
  status: Task["status"];
  /** True only if the approver has approved. */
  approved: boolean;
  title: string;
  requester: string;
  approver: string;
  decision_by: string | null;
  comment: string | null;
  decided_by: string | null;
  decided_at: string | null;
  page: string;
  /** What the status means, and what to do. */
  next: string;
}

export interface Request {
  title: string;
  description?: string | undefined;
  approver: string;
  decision_by?: string | undefined;
  comment_required?: boolean | undefined;
  idempotency_key?: string | undefined;
}

/** An argument of a tool is not allowed. */
export class ArgumentError extends Error {}

const FIRST_PAUSE = 0.5;
const LONGEST_PAUSE = 10;

/** Whether the settings allow to ask this person. */
export function mayAsk(settings: Settings, approver: string): boolean {
  const address = approver.toLowerCase();
  const domain = address.slice(address.lastIndexOf("@"));
  return settings.approvers.length === 0 || settings.approvers.includes(address) || settings.approvers.includes(domain);
}

/** Creates a request, and returns at once. */
export async function request(api: Api, settings: Settings, asked: Request, signal?: AbortSignal): Promise<Approval> {
  if (!mayAsk(settings, asked.approver)) {
    throw new ArgumentError(`The settings of this server allow to ask: ${settings.approvers.join(", ")}.`);
  }
  await api.refuseDecidingKey(signal);
  const task: NewTask = {
    title: asked.title,
    requester: await api.requesterAddress(signal),
    approver: asked.approver,
  };
  if (asked.description !== undefined) task.description = asked.description;
  if (asked.decision_by !== undefined) task.decisionBy = asked.decision_by;
  if (asked.comment_required !== undefined) task.commentRequired = asked.comment_required;
  if (settings.deciders !== undefined) task.deciders = settings.deciders;
  const notify = settings.notify ?? (settings.deciders === "approver" ? true : undefined);
  if (notify !== undefined) task.notify = notify;
  return describe(api, settings, await api.create(task, asked.idempotency_key ?? randomUUID(), signal));
}

/** Reads the status of a request. */
export async function check(api: Api, settings: Settings, id: string, signal?: AbortSignal): Promise<Approval> {
  return describe(api, settings, await api.get(id, 0, signal));
}

/**
 * Waits until a request has ended, for at most `seconds`. A lost connection, a restart and an overload of the server do
 * not end it; what fails for good does.
 */
export async function wait(
  api: Api,
  settings: Settings,
  id: string,
  seconds: number,
  signal?: AbortSignal,
): Promise<Approval> {
  const end = Date.now() + seconds * 1000;
  let pause = FIRST_PAUSE;
  for (;;) {
    const begun = Date.now();
    const left = Math.max(1, Math.ceil((end - begun) / 1000));
    let retryAfter: number;
    try {
      const task = await api.get(id, Math.min(LONGEST_WAIT, left), signal);
      if (task.status !== "pending" || Date.now() >= end) return describe(api, settings, task);
      // A server that stops or has too many callers responds at once.
      if (Date.now() - begun > 1000) pause = FIRST_PAUSE;
      retryAfter = Math.min(pause, Math.max(0, end - Date.now()) / 1000);
    } catch (error) {
      if (!(error instanceof ApiError) || !error.isPassing) throw error;
      retryAfter = Math.max(pause, error.retryAfter);
      if (Date.now() + retryAfter * 1000 > end) throw error;
    }
    await sleep(retryAfter * 1000, undefined, { signal });
    pause = Math.min(2 * pause, LONGEST_PAUSE);
  }
}

/** Withdraws a request. One that was decided before stays so, and is returned as it is. */
export async function cancel(
  api: Api,
  settings: Settings,
  id: string,
  reason: string | undefined,
  signal?: AbortSignal,
): Promise<Approval> {
  try {
    await api.cancel(id, reason, signal);
  } catch (error) {
    if (!(error instanceof ApiError) || error.code !== "task-already-resolved") throw error;
  }
  return describe(api, settings, await api.get(id, 0, signal));
}

const NEXT: Record<Task["status"], string> = {
  approved: "The approver has approved. Go on.",
  rejected: "The approver has rejected. Do not go on; the comment may say why.",
  cancelled: "The request was withdrawn. Do not go on.",
  pending: "Not decided yet: do not go on. Only a person can decide. Call wait_for_approval, also again and again.",
};

function describe(api: Api, settings: Settings, task: Task): Approval {
  const due = task.decisionBy === null ? undefined : Date.parse(`${task.decisionBy.replace(" ", "T")}Z`);
  const isOverdue = task.status === "pending" && due !== undefined && due <= api.serverTime;
  return {
    id: task.id,
    status: task.status,
    approved: task.status === "approved",
    title: task.title,
    requester: task.requester,
    approver: task.approver,
    decision_by: task.decisionBy,
    comment: task.comment,
    decided_by: task.decidedBy,
    decided_at: task.decisionMade,
    page: `${settings.publicUrl}/tasks?id=${encodeURIComponent(task.id)}`,
    next: NEXT[task.status] + (isOverdue ? " The date by which a decision was needed has passed." : ""),
  };
}
