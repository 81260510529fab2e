import type { components as Parts } from "./openapi.js";

type Schemas = Parts["schemas"];

/** The parts of the server's OpenAPI document. */
export type components = Omit<Parts, "schemas"> & {
  schemas: Schemas & {
    /** @deprecated The name of `FieldError` in some calls of 0.3.0. */
    PeopleTaskFieldError: Schemas["FieldError"];
    /** @deprecated The name of `Problem` in most calls of 0.3.0. */
    PeopleTaskProblem: Schemas["Problem"];
  };
};

/** A problem of the server (RFC 9457). */
export type ProblemBody = Schemas["Problem"];
/** An invalid field. */
export type FieldError = Schemas["FieldError"];
/** `pending` until the task is decided or withdrawn. */
export type TaskStatus = Schemas["TaskStatus"];
/** A task: the default fields, and those that `include` names. */
export type Task = Schemas["TaskResponse"];
/** A new task. It has the secrets of the links, which `console.log` does not show. */
export type CreatedTask = Schemas["NewTaskResponse"] & { approverSecret: string; requesterSecret: string };
/** A webhook of a task. */
export type Webhook = Schemas["WebhookResponse"];
/** What came of a call that tried a webhook. */
export type WebhookTest = Schemas["WebhookTest"];
/** A call of a webhook, and its attempts. */
export type Delivery = Schemas["DeliveryResponse"];
/** What a webhook is called for. */
export type WebhookEvent = Schemas["WebhookEvent"];
/** How many webhooks hear of a withdrawal. */
export type CancelPreview = Schemas["CancelPreview"];

/** A field that `include` adds to a task. */
export type TaskField = Exclude<keyof Task, "id" | "taskId" | "approver" | "requester" | "title" | "description" | "decisionBy" | "status" | "approverSecret" | "requesterSecret">;

/** How a task ended, by whom, when, and with which comment. */
export interface Decision extends Task {
  status: Exclude<TaskStatus, "pending">;
  /** E-mail address of the person who decided or withdrew it, if it is known. */
  decidedBy: string | null;
  decisionMade: string | null;
  /** What that person wrote; the reason of a withdrawal. */
  comment: string | null;
}

/** The decision of a task that was approved. */
export interface Approval extends Decision {
  status: "approved";
}

/** A webhook to register: where the call goes, when, and in which form. */
export type NewWebhook = Omit<Schemas["RegisterWebhookRequest"], "taskId">;

/** What a person is asked. */
export interface Question extends Omit<Schemas["CreateTaskRequest"], "requester" | "decisionBy" | "webhooks"> {
  /** Who needs the decision: by default the client's `requester`, or the address of the key's user. */
  requester?: string;
  /** By when: a `Date`, RFC 3339, or `YYYY-MM-DD HH:MM:SS` in UTC. */
  decisionBy?: string | Date | null;
  /** Webhooks to register with the task. */
  webhooks?: NewWebhook[];
}

/** Changes of a pending task. */
export type TaskChanges = Omit<Schemas["EditTaskRequest"], "decisionBy"> & { decisionBy?: string | Date | null };

export interface ClientOptions {
  /** The server's address, such as `https://countersign.example.com`. */
  url: string | URL;
  /** An API key (`csk_…`), or an access token. Some calls need none, such as those with the secret of a task. */
  key?: string;
  /** Who needs the decisions, if a question does not say it. */
  requester?: string;
  /** Seconds that one attempt of a call may take; 10 by default. */
  timeout?: number;
  /** Seconds for which a failed call is tried again; 60 by default, 0 for never. */
  retryFor?: number;
  /** The name and version of your program, which precede this package's in `User-Agent`. Browsers keep their own. */
  userAgent?: string;
  /** In place of the platform's `fetch`. */
  fetch?: typeof fetch;
}

export interface CallOptions {
  /** Ends the call. It then throws the signal's reason. */
  signal?: AbortSignal;
  /** Seconds that one attempt may take, in place of the client's. */
  timeout?: number;
  /** Seconds for which a failed call is tried again, in place of the client's. */
  retryFor?: number;
}

export interface CreateOptions extends CallOptions {
  /** 1 to 255 printable characters that only this question has: within 24 hours, it makes one task. Random by default. */
  idempotencyKey?: string;
}

export interface GetOptions extends CallOptions {
  /** Fields to add. */
  include?: readonly TaskField[];
  /** Seconds from 1 to 50 for which the server waits for the task's end before it answers. */
  wait?: number;
  /** The secret of the approver or requester, in place of a key. */
  secret?: string;
}

export interface WaitOptions {
  /** Seconds to wait for the decision; 7 days by default. With 0 the task is read once. */
  timeout?: number;
  /** Fields to add to the decision. */
  include?: readonly TaskField[];
  /** Ends the wait. It then throws the signal's reason. */
  signal?: AbortSignal;
  /** The secret of the approver or requester, in place of a key. */
  secret?: string;
}

export interface AskOptions {
  /** Seconds to wait for the decision: by default until `decisionBy`, or 7 days without it. */
  timeout?: number;
  /** Withdraw the task when the time is over, so that no one decides what is not waited for. False by default. */
  withdrawOnTimeout?: boolean;
  /** 1 to 255 printable characters that only this question has. Random by default. */
  idempotencyKey?: string;
  /** Called with the new task before the wait, such as to send the approver the link. */
  onCreated?: (task: CreatedTask) => unknown;
  include?: readonly TaskField[];
  signal?: AbortSignal;
}

export interface DecideOptions extends CallOptions {
  /** What to say about the decision, at most 2,000 characters. */
  comment?: string;
  /** The version of the task that was seen. If the task has another one, nothing is decided. */
  version?: number;
  /** The approver's secret, in place of a key. */
  secret?: string;
  /** As an administrator, decide what others should decide. It is recorded. */
  override?: boolean;
}

export interface CancelOptions extends CallOptions {
  /** Why, in at most 2,000 characters. */
  reason?: string;
  version?: number;
  /** The requester's secret, in place of a key. */
  secret?: string;
}

export interface TaskFilters {
  /** Your role; `any` is for administrators. */
  role?: "creator" | "approver" | "requester" | "any";
  status?: TaskStatus;
  approver?: string;
  requester?: string;
  title?: string;
  public?: boolean;
  /** A text in the title, or in the address of the approver or the requester, whatever its accents and its case. */
  text?: string;
  /** A text to search for. */
  pattern?: string;
}

export interface ListOptions extends TaskFilters {
  /** `created:-1` by default. */
  sort?: `${"created" | "decisionBy" | "title" | "status" | "mtime" | "approver" | "requester" | "decisionMade"}:${"1" | "-1"}`;
  /** How many rows a call brings, from 1 to 1000; 100 by default. */
  pageSize?: number;
  include?: readonly TaskField[];
  signal?: AbortSignal;
}

/** What a webhook's call has in its body, if its registration does not have a `body` of its own. */
export type WebhookTask = Omit<Task, "status"> & { status: WebhookEvent | "test" };

/** A webhook call that is genuine. */
export interface VerifiedCall<T = WebhookTask> {
  /** The same for every attempt: handle each once. */
  id: string;
  /** When this attempt was made. */
  timestamp: Date;
  /** Whether a user only tries the webhook. */
  isTest: boolean;
  body: T;
}
