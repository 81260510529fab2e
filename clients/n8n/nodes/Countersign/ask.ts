import { randomBytes, randomUUID } from 'crypto';
import type { IDataObject, IExecuteFunctions } from 'n8n-workflow';
import { NodeOperationError, WAIT_INDEFINITELY } from 'n8n-workflow';

import { call } from '../shared/api';
import { cancelTask, DETAILS } from '../shared/tasks';

/** How many items may be asked about at once: each webhook looks at the other tasks. */
const MAX_ITEMS = 100;

/** For how long requests to withdraw tasks are repeated, all together, in milliseconds. */
const WITHDRAWAL_TIME = 60_000;

/** The name of what the node remembers in its context while it waits. */
export const STATE = 'countersign';

/** The name of the parameter of the webhook's URL that tells this run of the node from earlier ones. */
export const ASK = 'ask';

/** What a webhook's answer must have to be a delivery: neither a page of n8n or a proxy nor other JSON counts. */
export const RECEIVED = { countersign: 'received' };

/** What the node waits for. */
export interface State {
	/** The value of [`ASK`] in the URL. */
	ask: string;
	/** The tasks, in the order of the items. */
	tasks: Asked[];
}

export interface Asked {
	id: string;
	/** The webhook that tells of a withdrawal. The node deletes it before it withdraws the task itself. */
	onCancelled: string;
}

/**
 * Makes a task for each item, and puts the execution to wait until each of them has ended. If one task cannot be made, the
 * others are withdrawn, so that no person is asked in vain.
 */
export async function askAndWait(context: IExecuteFunctions): Promise<void> {
	const items = context.getInputData();
	if (items.length > MAX_ITEMS) {
		const message = `There are more than ${MAX_ITEMS} items. Ask in a loop.`;
		throw new NodeOperationError(context.getNode(), message);
	}
	const state: State = { ask: randomBytes(16).toString('hex'), tasks: [] };
	const url = webhookUrl(context, state.ask);
	let isComplete = false;
	try {
		for (let item = 0; item < items.length; item++) {
			const body = newTask(context, item, url);
			if (body.requester === '') body.requester = await userOfKey(context);
			const options = { body, idempotencyKey: randomUUID(), itemIndex: item };
			const created = (await call(context, 'POST', '/people-task/tasks', options)) as IDataObject;
			const [, onCancelled] = created.webhooks as IDataObject[];
			state.tasks.push({ id: String(created.id), onCancelled: String(onCancelled.id) });
		}
		isComplete = true;
	} finally {
		if (!isComplete) await withdraw(context, state.tasks);
	}
	context.getContext('node')[STATE] = state;
	await context.putExecutionToWait(WAIT_INDEFINITELY);
}

/** The URL that resumes this node of this execution in this run only. */
function webhookUrl(context: IExecuteFunctions, ask: string): string {
	const url = new URL(context.evaluateExpression('{{ $execution.resumeUrl }}', 0) as string);
	url.pathname = `${url.pathname.replace(/\/$/, '')}/${context.getNode().id}`;
	url.searchParams.set(ASK, ask);
	return url.href;
}

function newTask(context: IExecuteFunctions, item: number, url: string): IDataObject {
	const text = (name: string) => String(context.getNodeParameter(name, item, '') ?? '').trim();
	const options = context.getNodeParameter('options', item, {}) as IDataObject;
	const events = ['approved', 'rejected'];
	const body: IDataObject = {
		title: text('title'),
		description: text('description'),
		requester: String(options.requester ?? '').trim(),
		approver: text('approver'),
	};
	const decisionBy = text('decisionBy');
	if (decisionBy !== '') {
		body.decisionBy = toDate(context, item, decisionBy);
		if (context.getNodeParameter('whenDue', item, 'stop') === 'stop') events.push('due');
	}
	for (const name of ['commentRequired', 'confirmationRequired', 'notify', 'language']) {
		if (options[name] !== undefined && options[name] !== '') body[name] = options[name];
	}
	if (options.deciders !== undefined && options.deciders !== '') body.deciders = options.deciders;
	// The approver needs the link of the mail.
	if (body.deciders === 'approver') body.notify ??= true;
	if (options.selfApproval === false) body.selfApproval = false;
	const metadata = toObject(context, item, options.metadata);
	if (metadata) body.metadata = metadata;
	const success = { pointer: '/countersign', value: RECEIVED.countersign };
	body.webhooks = [
		{ url, events, include: DETAILS, success },
		{ url, events: ['cancelled'], include: DETAILS, success },
	];
	return body;
}

/** Countersign takes dates in UTC. n8n has them with an offset, as a date of Luxon, or without an offset in the workflow's zone. */
function toDate(context: IExecuteFunctions, item: number, given: string): string {
	const hasOffset = /(Z|[+-]\d\d:?\d\d)$/i.test(given);
	const zone = JSON.stringify(context.getTimezone());
	const text = JSON.stringify(given.replace(' ', 'T'));
	const date = hasOffset
		? new Date(given)
		: new Date(
				context.evaluateExpression(
					`{{ DateTime.fromISO(${text}, { zone: ${zone} }).toMillis() }}`,
					item,
				) as number,
			);
	if (Number.isNaN(date.getTime())) {
		throw new NodeOperationError(context.getNode(), 'Decide By is not a date', { itemIndex: item });
	}
	return `${date.toISOString().slice(0, 19)}Z`;
}

function toObject(
	context: IExecuteFunctions,
	item: number,
	given: unknown,
): IDataObject | undefined {
	if (given === undefined || given === '' || given === '{}') return undefined;
	try {
		const value = typeof given === 'string' ? (JSON.parse(given) as unknown) : given;
		if (typeof value === 'object' && value !== null && !Array.isArray(value))
			return value as IDataObject;
	} catch {
		// Refused below.
	}
	throw new NodeOperationError(context.getNode(), 'Metadata must be a JSON object', {
		itemIndex: item,
	});
}

async function userOfKey(context: IExecuteFunctions): Promise<string> {
	const user = (await call(context, 'GET', '/user')) as IDataObject;
	return String(user.email ?? '');
}

/** Withdraws the tasks as far as that is possible within [`WITHDRAWAL_TIME`]. */
async function withdraw(context: IExecuteFunctions, tasks: Asked[]): Promise<void> {
	const end = Date.now() + WITHDRAWAL_TIME;
	for (const { id } of tasks) {
		const repeatTime = Math.max(0, end - Date.now());
		await cancelTask(context, id, 'The workflow failed.', { repeatTime }).catch(() => {
			context.logger.warn('A Countersign task of a failed node could not be withdrawn', { id });
		});
	}
}
