import type { IDataObject, INodeExecutionData, IPollFunctions } from 'n8n-workflow';

import { call } from '../shared/api';
import { toOutput } from '../shared/tasks';

const PAGE = 100;
const MAX_PAGES = 100;
/** How many items a test in the editor gets. */
const SAMPLES = 3;
/** How far back each poll looks again, in milliseconds: a change may become visible after later ones. */
const OVERLAP = 60_000;
/** For how long a request is repeated, in milliseconds: less than the minute until the next poll. */
const REPEAT_TIME = 20_000;
const FIELDS = 'created,mtime,comment,decidedBy,decisionMade,metadata';

/** What the node remembers between polls. */
interface Cursor {
	/** The time of the newest change that was seen, in milliseconds since 1970. */
	since: number;
	/** The changes within the overlap that were seen. */
	seen: string[];
}

interface Change {
	key: string;
	at: number;
	event: string;
	task: IDataObject;
}

/** Returns the changes since the last poll, the oldest first; `null` if there are none. The first poll only looks. */
export async function poll(context: IPollFunctions): Promise<INodeExecutionData[][] | null> {
	const events = context.getNodeParameter('events') as string[];
	const stored = context.getWorkflowStaticData('node');
	const cursor = stored.cursor as Cursor | undefined;
	const isManual = context.getMode() === 'manual';
	if (isManual) return toItems((await load(context, undefined, events)).slice(-SAMPLES));
	const all = await load(context, cursor ? cursor.since - OVERLAP : undefined);
	const seen = new Set(cursor?.seen);
	const fresh = all.filter(({ key }) => cursor && !seen.has(key));
	const since = Math.max(cursor?.since ?? 0, ...all.map(({ at }) => at));
	stored.cursor = {
		since,
		seen: all.filter(({ at }) => at > since - OVERLAP).map(({ key }) => key),
	};
	return toItems(fresh.filter(({ event }) => events.includes(event)));
}

function toItems(changes: Change[]): INodeExecutionData[][] | null {
	if (changes.length === 0) return null;
	return [changes.map(({ event, task }) => ({ json: { event, ...toOutput(task) } }))];
}

/**
 * Loads the changes after a time, the oldest first; without a time, those of the newest page. With `events`, only these.
 */
async function load(context: IPollFunctions, after?: number, events?: string[]): Promise<Change[]> {
	const role = context.getNodeParameter('role', '') as string;
	const query: IDataObject = { sort: 'mtime:-1', limit: PAGE, include: FIELDS };
	if (role !== '') query.role = role;
	// A task that changes between two pages moves the others, so one may be on both.
	const changes = new Map<string, Change>();
	query.offset = 0;
	for (let page = 0; ; page++) {
		if (page === MAX_PAGES) {
			context.logger.warn('The Countersign Trigger does not report the oldest of too many changes');
			break;
		}
		const tasks = (await call(context, 'GET', '/people-task/tasks', {
			query,
			repeatTime: REPEAT_TIME,
		})) as IDataObject[];
		const newer = tasks.filter(({ mtime }) => after === undefined || time(mtime) > after);
		for (const change of newer.flatMap(changesOf)) changes.set(change.key, change);
		// A page of long tasks is shorter than its limit.
		if (after === undefined || tasks.length === 0 || newer.length < tasks.length) break;
		query.offset += tasks.length;
	}
	const wanted = [...changes.values()].filter(
		({ at, event }) => (after === undefined || at > after) && (events?.includes(event) ?? true),
	);
	return wanted.sort((one, other) => one.at - other.at);
}

function changesOf(task: IDataObject): Change[] {
	const id = String(task.id);
	const created = { key: `${id}:created`, at: time(task.created), event: 'created', task };
	if (task.status === 'pending') return [created];
	const event = String(task.status);
	return [created, { key: `${id}:${event}`, at: time(task.decisionMade), event, task }];
}

function time(text: unknown): number {
	return Date.parse(String(text)) || 0;
}
