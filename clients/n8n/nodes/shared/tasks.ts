import type { IDataObject } from 'n8n-workflow';
import { NodeApiError } from 'n8n-workflow';

import type { Context } from './api';
import { call } from './api';

/** The fields that responses and webhooks have in addition. */
export const DETAILS = ['created', 'comment', 'decidedBy', 'decisionMade', 'metadata'];

/** Why a task was withdrawn whose date had passed. */
export const DUE_REASON = 'Not decided in time.';

const STATUSES: unknown[] = ['pending', 'approved', 'rejected', 'cancelled'];

/** What a request about a task may say in addition. */
export interface Options {
	/** For how long to repeat the request, in milliseconds. */
	repeatTime?: number;
	/** The item that the request is about. */
	itemIndex?: number;
}

/** Reads a task with what is known about its decision. */
export async function getTask(
	context: Context,
	id: string,
	options: Options = {},
): Promise<IDataObject> {
	const query = { include: DETAILS.join(',') };
	const task = (await call(context, 'GET', path(id), { ...options, query })) as IDataObject;
	if (task.id !== id || !STATUSES.includes(task.status)) {
		// Such as the JSON of a proxy. It is no decision.
		const code = 'unexpected-response';
		const message = 'The response is no task of Countersign';
		const { itemIndex } = options;
		throw new NodeApiError(context.getNode(), { message, code }, { message, description: code, itemIndex });
	}
	return task;
}

/** Withdraws a task. One that has ended before stays as it is. */
export async function cancelTask(
	context: Context,
	id: string,
	reason: string,
	options: Options = {},
): Promise<void> {
	const body = reason === '' ? {} : { reason };
	await call(context, 'POST', `${path(id)}/cancel`, {
		...options,
		body,
		allow: ['task-already-resolved'],
	});
}

function path(id: string): string {
	return `/people-task/tasks/${encodeURIComponent(id)}`;
}

/** What workflows get of a task: no secret, and `approved`, which is true only after an approval. */
export function toOutput(task: IDataObject): IDataObject {
	const isDue = task.status === 'cancelled' && task.comment === DUE_REASON;
	return {
		id: task.id,
		status: isDue ? 'due' : task.status,
		approved: task.status === 'approved',
		comment: task.comment ?? null,
		decidedBy: task.decidedBy ?? null,
		decidedAt: task.decisionMade ?? null,
		title: task.title,
		description: task.description,
		requester: task.requester,
		approver: task.approver,
		decisionBy: task.decisionBy ?? null,
		created: task.created ?? null,
		metadata: task.metadata ?? null,
	};
}
