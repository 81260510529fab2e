import type { IDataObject, IWebhookFunctions, IWebhookResponseData } from 'n8n-workflow';
import { NodeApiError } from 'n8n-workflow';

import type { Headers } from '../shared/signature';
import { call } from '../shared/api';
import { holdsWithKeys } from '../shared/keys';
import { isSigned } from '../shared/signature';
import { cancelTask, DUE_REASON, getTask, toOutput } from '../shared/tasks';
import type { Asked, State } from './ask';
import { ASK, RECEIVED, STATE } from './ask';

/** Countersign waits ten seconds for the answer and then repeats the call, so requests to it are hardly repeated here. */
const REPEAT_TIME = 2_000;
/** How many tasks are read at the same time. */
const PARALLEL = 10;

/**
 * Resumes the execution when every task of the current run of the node has ended. It never throws: that would end the
 * execution.
 *
 * The signature, the parameter `ask` and the task must be right. The decision is that of the call; those of other items
 * are read from Countersign.
 */
export async function receive(context: IWebhookFunctions): Promise<IWebhookResponseData> {
	try {
		const body = context.getBodyData();
		const query = context.getQueryData() as IDataObject;
		if (!(await isGenuine(context))) return refuse(context, 401, 'The signature is invalid');
		const state = readState(context);
		if (!state) return refuse(context, 503, 'The node does not wait');
		// A test, or the repeat of a call to an earlier run of the node, which has been handled.
		if (body.status === 'test' || state.ask !== query[ASK]) return received();
		const id = String(body.id);
		const asked = state.tasks.find((task) => task.id === id);
		if (!asked) return refuse(context, 404, 'The node does not wait for this task');
		if (body.status === 'due') {
			if (await hasLaterDate(context, id, body.decisionBy)) return received();
			await withdrawDue(context, asked);
		}
		const tasks = await readEnded(context, state.tasks, body.status === 'due' ? undefined : body);
		if (!tasks) return received();
		const output = tasks.map((task, item) => ({ json: toOutput(task), pairedItem: { item } }));
		return { webhookResponse: RECEIVED, workflowData: [output] };
	} catch (error) {
		const reason = (error instanceof NodeApiError && error.description) || 'internal-error';
		context.logger.warn('A call of Countersign could not be handled and will be repeated', {
			reason,
		});
		return refuse(context, 503, reason);
	}
}

function received(): IWebhookResponseData {
	return { webhookResponse: RECEIVED };
}

/** Responds with an error, and leaves the execution waiting. Countersign repeats the call. */
function refuse(context: IWebhookFunctions, status: number, error: string): IWebhookResponseData {
	context.getResponseObject().status(status).json({ error });
	return { noWebhookResponse: true };
}

async function isGenuine(context: IWebhookFunctions): Promise<boolean> {
	const { rawBody } = context.getRequestObject();
	if (!Buffer.isBuffer(rawBody)) return false;
	const headers = context.getHeaderData() as Headers;
	return await holdsWithKeys(context, REPEAT_TIME, (keys) => isSigned(keys, headers, rawBody));
}

/** What the node remembered when it put the execution to wait. */
function readState(context: IWebhookFunctions): State | undefined {
	const name = JSON.stringify(context.getNode().name);
	const text = context.evaluateExpression(
		`{{ JSON.stringify($node[${name}].context[${JSON.stringify(STATE)}]) }}`,
	);
	return typeof text === 'string' ? (JSON.parse(text) as State) : undefined;
}

/** Whether a pending task has a later date than that which has passed, or none: a call may come hours later. */
async function hasLaterDate(
	context: IWebhookFunctions,
	id: string,
	passed: unknown,
): Promise<boolean> {
	const { status, decisionBy } = await getTask(context, id, { repeatTime: REPEAT_TIME });
	// Dates in the API's format sort as texts.
	const isLater = decisionBy === null || String(decisionBy) > String(passed);
	return status === 'pending' && isLater;
}

/**
 * Withdraws a task whose date has passed. If it was decided in the meantime, that counts. It may be repeated. The webhook
 * that tells of withdrawals is deleted, because its call would come when the execution goes on already.
 */
async function withdrawDue(context: IWebhookFunctions, { id, onCancelled }: Asked): Promise<void> {
	const options = { repeatTime: REPEAT_TIME, allow: ['not-found'] };
	await call(
		context,
		'DELETE',
		`/people-task/webhooks/${encodeURIComponent(onCancelled)}`,
		options,
	);
	await cancelTask(context, id, DUE_REASON, { repeatTime: REPEAT_TIME });
}

/** Reads the tasks but the one that is known; nothing if one of them is pending. */
async function readEnded(
	context: IWebhookFunctions,
	asked: Asked[],
	known: IDataObject | undefined,
): Promise<IDataObject[] | undefined> {
	const tasks: IDataObject[] = [];
	const read = async ({ id }: Asked) =>
		known?.id === id ? known : await getTask(context, id, { repeatTime: REPEAT_TIME });
	for (let start = 0; start < asked.length; start += PARALLEL) {
		const part = await Promise.all(asked.slice(start, start + PARALLEL).map(read));
		if (part.some(({ status }) => status === 'pending')) return undefined;
		tasks.push(...part);
	}
	return tasks;
}
