import { createPublicKey, verify } from 'crypto';

/** What precedes an Ed25519 key in its SubjectPublicKeyInfo form. */
const PREFIX = Buffer.from('302a300506032b6570032100', 'hex');
const KEY_LENGTH = 32;
/** How far the time of a call may be off, in seconds. */
const TOLERANCE = 300;

export type Headers = Record<string, string | string[] | undefined>;

/**
 * Whether a call was signed with one of the keys, which begin with `whpk_`, within the last five minutes. `body` has the
 * bytes as they were received.
 */
export function isSigned(
	keys: string[],
	headers: Headers,
	body: Buffer,
	now: number = Date.now(),
): boolean {
	const header = (name: string) => (typeof headers[name] === 'string' ? headers[name] : '');
	const timestamp = header('webhook-timestamp');
	if (!/^\d{1,12}$/.test(timestamp) || Math.abs(now / 1000 - Number(timestamp)) > TOLERANCE)
		return false;
	const id = header('webhook-id');
	if (id === '') return false;
	const signed = Buffer.concat([Buffer.from(`${id}.${timestamp}.`), body]);
	const given = header('webhook-signature').split(' ');
	const signatures = given
		.filter((text) => text.startsWith('v1a,'))
		.map((text) => Buffer.from(text.slice(4), 'base64'));
	return keys.some((key) => signatures.some((signature) => isSignedWith(key, signed, signature)));
}

function isSignedWith(text: string, signed: Buffer, signature: Buffer): boolean {
	const raw = Buffer.from(text.replace(/^whpk_/, ''), 'base64');
	if (raw.length !== KEY_LENGTH || signature.length !== 64) return false;
	const key = createPublicKey({ key: Buffer.concat([PREFIX, raw]), format: 'der', type: 'spki' });
	return verify(null, signed, key, signature);
}
