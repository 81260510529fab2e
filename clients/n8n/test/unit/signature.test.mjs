import assert from 'node:assert/strict';
import { test } from 'node:test';

import { isSigned } from '../../dist/nodes/shared/signature.js';
import { FakeCountersign } from '../fake-countersign.mjs';

const countersign = new FakeCountersign();
const other = new FakeCountersign();
const { headers, rawBody } = countersign.signed({ id: '1', status: 'approved', title: 'Grüße \u2028' });
const keys = [countersign.publicKey];

test('a call with a signature by a published key is genuine', () => {
	assert.equal(isSigned(keys, headers, rawBody), true);
	assert.equal(isSigned([other.publicKey, ...keys], headers, rawBody), true);
	const rotated = { ...headers, 'webhook-signature': `v1a,${'A'.repeat(86)}== ${headers['webhook-signature']}` };
	assert.equal(isSigned(keys, rotated, rawBody), true);
});

const changed = {
	'another body': [keys, headers, Buffer.from(`${rawBody} `)],
	'another id': [keys, { ...headers, 'webhook-id': 'x' }, rawBody],
	'another key': [[other.publicKey], headers, rawBody],
	'no key': [[], headers, rawBody],
	'a key that is none': [['whpk_AAAA', 'undefined'], headers, rawBody],
	'no signature': [keys, { ...headers, 'webhook-signature': '' }, rawBody],
	'no header': [keys, {}, rawBody],
	'a header that is there twice': [keys, { ...headers, 'webhook-signature': [headers['webhook-signature']] }, rawBody],
	'a signature of another kind': [keys, { ...headers, 'webhook-signature': headers['webhook-signature'].replace('v1a,', 'v1b,') }, rawBody],
	'a time that is none': [keys, { ...headers, 'webhook-timestamp': 'NaN' }, rawBody],
};
for (const [name, given] of Object.entries(changed)) {
	test(`a call with ${name} is not genuine`, () => assert.equal(isSigned(...given), false));
}

test('a call is genuine for five minutes', () => {
	const at = Number(headers['webhook-timestamp']) * 1000;
	assert.equal(isSigned(keys, headers, rawBody, at + 300_000), true);
	assert.equal(isSigned(keys, headers, rawBody, at + 301_000), false);
	assert.equal(isSigned(keys, headers, rawBody, at - 301_000), false);
});
