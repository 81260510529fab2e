import assert from 'node:assert/strict';
import { after, before, beforeEach, test } from 'node:test';

import { poll } from '../../dist/nodes/CountersignTrigger/poll.js';
import { FakeCountersign } from '../fake-countersign.mjs';
import { Context } from './context.mjs';

let countersign;
before(async () => (countersign = await new FakeCountersign().start()));
after(() => countersign.stop());
beforeEach(() => countersign.tasks.clear());

/** Puts a task into the fake, as old as is said in seconds. */
function add(title, age = 0) {
	const created = new Date(Date.now() - age * 1000).toISOString();
	const id = String(countersign.tasks.size).padStart(24, '0');
	countersign.tasks.set(id, { id, title, status: 'pending', created, mtime: created });
	return id;
}

const trigger = (events = ['approved', 'rejected', 'cancelled']) => new Context(countersign, { events, role: 'creator' });
const found = (result) => (result?.[0] ?? []).map(({ json }) => `${json.title} ${json.event}`);

test('what was decided before the first poll is not reported, and what was decided later is, once', async () => {
	const context = trigger();
	const [old, chair, lamp] = [add('old', 300), add('chair', 300), add('lamp', 300)];
	countersign.end(old, 'approved');
	assert.equal(await poll(context), null);
	countersign.end(chair, 'approved');
	countersign.end(lamp, 'rejected');
	assert.deepEqual(found(await poll(context)).sort(), ['chair approved', 'lamp rejected']);
	assert.equal(await poll(context), null);
});

test('only the chosen events are reported', async () => {
	const context = trigger(['created']);
	await poll(context);
	const chair = add('chair');
	countersign.end(chair, 'approved');
	assert.deepEqual(found(await poll(context)), ['chair created']);
});

test('a change that becomes visible after a later one is reported', async () => {
	const context = trigger(['created']);
	add('first', 100);
	await poll(context);
	add('late');
	assert.deepEqual(found(await poll(context)), ['late created']);
	add('slow', 20);
	assert.deepEqual(found(await poll(context)), ['slow created']);
});

test('more changes than a page has are all reported', async () => {
	const context = trigger(['created']);
	await poll(context);
	for (let number = 0; number < 250; number++) add(`task ${number}`);
	assert.equal(new Set(found(await poll(context))).size, 250);
	assert.equal(await poll(context), null);
});

test('pages that are shorter than their limit, because the tasks are long, are all read', async (t) => {
	countersign.longestPage = 69;
	t.after(() => (countersign.longestPage = 100));
	const context = trigger(['created']);
	await poll(context);
	for (let number = 0; number < 90; number++) add(`task ${number}`);
	assert.equal(new Set(found(await poll(context))).size, 90);
	assert.equal(await poll(context), null);
});

test('changes that are too many to be read are told in the log', async (t) => {
	countersign.longestPage = 1;
	t.after(() => (countersign.longestPage = 100));
	const context = trigger(['created']);
	await poll(context);
	for (let number = 0; number < 101; number++) add(`task ${number}`);
	assert.equal(found(await poll(context)).length, 100);
	assert.match(context.logged.join(), /does not report the oldest/);
});

test('a change that moves to the next page while they are read is reported once', async () => {
	const context = trigger(['created']);
	await poll(context);
	for (let number = 0; number < 150; number++) add(`task ${number}`, number / 10);
	countersign.afterList = () => {
		countersign.afterList = undefined;
		add('new');
	};
	const reported = found(await poll(context));
	assert.equal(new Set(reported).size, 150);
	assert.equal(reported.length, 150);
	assert.deepEqual(found(await poll(context)), ['new created']);
});

test('a test in the editor gets the newest changes, and moves nothing on', async () => {
	const context = trigger();
	countersign.end(add('chair', 300), 'approved');
	context.mode = 'manual';
	assert.deepEqual(found(await poll(context)), ['chair approved']);
	assert.deepEqual(context.staticData, {});
});
