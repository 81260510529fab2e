import type { IDataObject } from 'n8n-workflow';

import type { Context } from './api';
import { call } from './api';

/** How old keys may be that are used without asking again, in milliseconds. */
const MAX_AGE = 3_600_000;
/** Keys are asked for at most so often because a signature was wrong, in milliseconds. */
const MIN_AGE = 60_000;

interface Cached {
	keys: string[];
	at: number;
}

const cache = new Map<string, Cached>();

/** Checks something with the published keys of Countersign, and with newer ones if it does not hold with those known. */
export async function holdsWithKeys(
	context: Context,
	repeatTime: number,
	holds: (keys: string[]) => boolean,
): Promise<boolean> {
	const { url } = await context.getCredentials<{ url: string }>('countersignApi');
	const known = cache.get(url);
	const age = known ? Date.now() - known.at : Infinity;
	if (known && age < MAX_AGE) {
		if (holds(known.keys)) return true;
		if (age < MIN_AGE) return false;
	}
	const response = await call(context, 'GET', '/.well-known/webhook-keys.json', { repeatTime });
	const published = ((response as IDataObject).keys ?? []) as IDataObject[];
	const keys = published.map(({ whpk }) => String(whpk));
	cache.set(url, { keys, at: Date.now() });
	return holds(keys);
}
