// Calls about one task.

import { call } from "./api.js";
import { draftOf, dropDraft, keepDraft, randomName, secretOf, token } from "./session.js";

/** The fields that every version of the service can add. */
const KNOWN = ["isApprover", "decisionMade", "created", "public"];
/** Fields of newer services. While one of an earlier version still runs, the pages do without them. */
const NEWER = ["comment", "commentRequired", "confirmationRequired", "decidedBy", "isRequester", "canDecide", "version", "deciders", "decidedVia"];

const path = (id) => `/people-task/tasks/${encodeURIComponent(id)}`;

/** The secret of the task's link if this tab has one, otherwise the user's token. */
export function accessTo(id) {
  const secret = secretOf(id);
  return secret ? { secret } : { token: token() };
}

async function withFields(url, access) {
  const get = (fields) => call("GET", `${url}include=${fields}`, access);
  try {
    return await get([...KNOWN, ...NEWER]);
  } catch (error) {
    if (!error.about("include")) throw error;
    return get(KNOWN);
  }
}

function complete(task) {
  return { comment: null, commentRequired: false, confirmationRequired: false, decidedBy: null, ...task, canDecide: task.canDecide ?? task.isApprover };
}

/** A task with everything that the pages show. */
export async function loadTask(id) {
  return complete(await withFields(`${path(id)}?`, accessTo(id)));
}

/** The task that the user can decide next, or nothing. */
export async function nextTask(id) {
  const query = "role=approver&filter=status:pending&sort=created:-1&limit=2&projection=-description";
  const tasks = await call("GET", `/people-task/tasks?${query}`, { token: token() });
  return tasks.find((task) => task.id !== id);
}

/** Changes a task, if it still is as it was shown. */
export const editTask = ({ id, version }, body) => call("PUT", path(id), { ...accessTo(id), version, body });

/** What was last sent to register a webhook. Its URL may be a secret, so that only the page has it. */
let sentWebhook = null;
const SENT_TASK = "sent-new-task";
const keepSentTask = (sent) => (sent ? keepDraft(SENT_TASK, sent) : dropDraft(SENT_TASK));

/**
 * Creates something. A person whose browser got no response sends the form again: until that has succeeded, the same body has the same
 * key as in `before`, which was given to `keep`, and the service creates nothing twice.
 */
async function create(path, body, before, keep) {
  const text = JSON.stringify(body);
  const sent = before?.text === text ? before : { text, key: randomName() };
  keep(sent);
  const created = await call("POST", path, { token: token(), body, key: sent.key });
  keep(null);
  return created;
}

/** Creates a task: once, also if the form was closed or the page loaded again before it is sent again. */
export const createTask = (body) => create("/people-task/tasks", body, draftOf(SENT_TASK), keepSentTask);
export const createWebhook = (body) => create("/people-task/webhooks", body, sentWebhook, (sent) => { sentWebhook = sent; });

/** Removes a webhook. One that is added afterwards is new: a repeat of its request would get the earlier response. */
export function removeWebhook(id) {
  sentWebhook = null;
  return call("DELETE", `/people-task/webhooks/${encodeURIComponent(id)}`, { token: token() });
}

/** Approves or rejects a task, if it still is as it was shown. */
export const sendDecision = ({ id, version }, verb, comment) =>
  call("PUT", `${path(id)}/${verb}`, { ...accessTo(id), version, body: comment ? { comment } : {} });

/** How many webhooks would be called if the task were withdrawn, and how many would not. */
export const cancelPreview = (id) => call("GET", `${path(id)}/cancel`, accessTo(id));

/** Withdraws a task, if it still is as it was shown. */
export const cancelTask = ({ id, version }, reason) =>
  call("POST", `${path(id)}/cancel`, { ...accessTo(id), version, body: reason ? { reason } : {} });

export const webhooksOf = (id) => call("GET", `${path(id)}/webhooks`, { token: token() });

export const deliveriesOf = (id) => call("GET", `${path(id)}/deliveries?limit=100`, { token: token() });

export const testWebhook = (id) => call("POST", `/people-task/webhooks/${encodeURIComponent(id)}/test`, { token: token() });

export const redeliver = (id) => call("POST", `/people-task/deliveries/${encodeURIComponent(id)}/redeliver`, { token: token() });
