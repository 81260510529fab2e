import assert from 'node:assert/strict';
import { after, before, beforeEach, test } from 'node:test';

import { askAndWait } from '../../dist/nodes/Countersign/ask.js';
import { receive } from '../../dist/nodes/Countersign/receive.js';
import { call } from '../../dist/nodes/shared/api.js';
import { FakeCountersign } from '../fake-countersign.mjs';
import { Context } from './context.mjs';

let countersign;
before(async () => (countersign = await new FakeCountersign().start()));
after(() => countersign.stop());
beforeEach(() => {
	countersign.tasks.clear();
	countersign.requests.length = 0;
	countersign.revoked = false;
});

const CHAIR = { title: 'Buy a chair', approver: 'grace@example.com', decisionBy: '', options: {} };

async function asked(parameters = {}, items = [{}]) {
	const context = new Context(countersign, { ...CHAIR, ...parameters }, items);
	await askAndWait(context);
	const state = context.nodeContext.countersign;
	return { context, state, tasks: [...countersign.tasks.values()] };
}

/** Calls the node's webhook as Countersign does, with the query of the URL that it was told. */
function tell({ context, state }, task, query = { ask: state.ask }) {
	return receive(context.called(countersign.signed(task), query));
}

test('it asks with a url of this node and run, and puts the execution to wait', async () => {
	const { context, state, tasks } = await asked({ options: { requester: 'bob@example.com', deciders: '', metadata: '{"order": 1}' } });
	assert.equal(context.waits, true);
	assert.equal(tasks[0].requester, 'bob@example.com');
	assert.deepEqual([tasks[0].deciders, tasks[0].metadata], [undefined, { order: 1 }]);
	const [decided, cancelled] = countersign.webhooks.values();
	assert.equal(decided.url, `http://n8n.test/webhook-waiting/7/node-1?signature=abc&ask=${state.ask}`);
	assert.deepEqual([decided.events, cancelled.events], [['approved', 'rejected'], ['cancelled']]);
	assert.deepEqual(decided.success, { pointer: '/countersign', value: 'received' });
	countersign.webhooks.clear();
});

test('each run has a url of its own', async () => {
	assert.notEqual((await asked()).state.ask, (await asked()).state.ask);
});

test('the requester is the user of the key by default', async () => {
	assert.equal((await asked()).tasks[0].requester, 'ada@example.com');
});

test('only the approver decides by the mailed link, so there is a mail', async () => {
	assert.equal((await asked({ options: { deciders: 'approver' } })).tasks[0].notify, true);
	assert.equal((await asked({ options: { deciders: 'signed-in' } })).tasks[1].notify, undefined);
});

test('a lost response makes no second task', async () => {
	countersign.faults.push(undefined, 'lose-response', 'unavailable', 'page');
	const { tasks } = await asked();
	assert.equal(tasks.length, 1);
	assert.equal(countersign.requests.filter((request) => request === 'POST /people-task/tasks').length, 4);
});

test('a request is repeated after an error of a proxy, and not if the error lasts', async () => {
	countersign.faults.push(500, 520, 527);
	assert.equal((await call(new Context(countersign), 'GET', '/user')).email, 'ada@example.com');
	assert.equal(countersign.requests.length, 4);
	countersign.faults.push(501);
	await assert.rejects(call(new Context(countersign), 'GET', '/user'), { description: 'unexpected-response' });
	assert.equal(countersign.requests.length, 5);
});

test('if one item cannot be asked about, the others are withdrawn', async () => {
	const titles = ['Buy a chair', ''];
	const asking = asked({ title: (item) => titles[item] }, [{}, {}]);
	await assert.rejects(asking, ({ message, description, context }) => {
		assert.match(message, /title: Must not be blank/);
		assert.deepEqual([description, context.itemIndex], ['validation-failed', 1]);
		return true;
	});
	const [task] = countersign.tasks.values();
	assert.deepEqual([task.status, task.comment], ['cancelled', 'The workflow failed.']);
});

test('an error does not tell the key', async () => {
	countersign.faults.push('lose-request', 'lose-request');
	const reading = call(new Context(countersign), 'GET', '/people-task/tasks/1', { repeatTime: 600 });
	await assert.rejects(reading, (error) => {
		assert.ok(!JSON.stringify(error, Object.getOwnPropertyNames(error)).includes(countersign.key));
		assert.equal(error.description, 'unreachable');
		return true;
	});
	assert.equal(countersign.requests.length, 2);
});

test('too many items are refused before a person is asked', async () => {
	await assert.rejects(asked({}, Array(101).fill({})), /Ask in a loop/);
	assert.equal(countersign.requests.length, 0);
});

test('a date that has an offset is sent in UTC, and one that is none is refused', async () => {
	const { tasks } = await asked({ decisionBy: '2030-01-31T12:00:00.000+01:00', whenDue: 'stop' });
	assert.equal(tasks[0].decisionBy, '2030-01-31T11:00:00Z');
	await assert.rejects(asked({ decisionBy: 'soonZ' }), /not a date/);
});

test('a decision resumes with what the call says', async () => {
	const run = await asked();
	const decided = { ...run.tasks[0], status: 'approved', comment: 'Yes.', decidedBy: 'grace@example.com', secret: 'x' };
	const { workflowData, webhookResponse } = await tell(run, decided);
	const [[{ json, pairedItem }]] = workflowData;
	assert.deepEqual([json.status, json.approved, json.comment, json.decidedBy], ['approved', true, 'Yes.', 'grace@example.com']);
	assert.equal(json.secret, undefined);
	assert.deepEqual(pairedItem, { item: 0 });
	assert.deepEqual(webhookResponse, { countersign: 'received' });
});

test('a key that was revoked keeps no decision away', async () => {
	const run = await asked();
	countersign.revoked = true;
	const { workflowData } = await tell(run, { ...run.tasks[0], status: 'rejected' });
	assert.equal(workflowData[0][0].json.status, 'rejected');
});

test('several items go on when all have been decided', async () => {
	const run = await asked({ title: (item) => `Buy chair ${item}` }, [{}, {}, {}]);
	for (const item of [1, 0]) {
		countersign.end(run.tasks[item].id, 'approved');
		assert.equal((await tell(run, run.tasks[item])).workflowData, undefined);
	}
	countersign.end(run.tasks[2].id, 'rejected', 'No.');
	const { workflowData } = await tell(run, run.tasks[2]);
	assert.deepEqual(workflowData[0].map(({ json }) => [json.title, json.status]), [
		['Buy chair 0', 'approved'],
		['Buy chair 1', 'approved'],
		['Buy chair 2', 'rejected'],
	]);
});

test('a due date withdraws the task, without a call about that', async () => {
	countersign.webhooks.clear();
	const run = await asked({ decisionBy: '2020-01-01T00:00:00Z', whenDue: 'stop' });
	assert.deepEqual([...countersign.webhooks.values()][0].events, ['approved', 'rejected', 'due']);
	const { workflowData } = await tell(run, { ...run.tasks[0], status: 'due' });
	const [{ json }] = workflowData[0];
	assert.deepEqual([json.status, json.approved], ['due', false]);
	assert.equal(countersign.tasks.get(json.id).status, 'cancelled');
	assert.deepEqual([...countersign.webhooks.values()].map(({ events }) => events.length), [3]);
	// The same call again, such as after a crash.
	assert.equal((await tell(run, { ...run.tasks[0], status: 'due' })).workflowData[0][0].json.status, 'due');
});

test('a late call about a date that was changed meanwhile withdraws nothing', async () => {
	const run = await asked({ decisionBy: '2020-01-01T00:00:00Z', whenDue: 'stop' });
	for (const decisionBy of ['2030-01-01 00:00:00', null]) {
		const call = { ...run.tasks[0], decisionBy: '2020-01-01 00:00:00', status: 'due' };
		run.tasks[0].decisionBy = decisionBy;
		assert.equal((await tell(run, call)).workflowData, undefined);
		assert.equal(countersign.tasks.get(run.tasks[0].id).status, 'pending');
	}
	countersign.end(run.tasks[0].id, 'approved');
	assert.equal((await tell(run, run.tasks[0])).workflowData[0][0].json.status, 'approved');
});

test('a decision at the due date counts', async () => {
	const run = await asked({ decisionBy: '2020-01-01T00:00:00Z', whenDue: 'stop' });
	countersign.end(run.tasks[0].id, 'approved');
	const { workflowData } = await tell(run, { ...run.tasks[0], status: 'due' });
	assert.equal(workflowData[0][0].json.status, 'approved');
});

test('the repeat of a call to an earlier run resumes nothing, and is not repeated again', async () => {
	const [first, second] = [await asked(), await asked()];
	const repeat = { ...first.tasks[0], status: 'approved' };
	const result = await tell({ ...second, state: first.state }, repeat);
	assert.deepEqual(result, { webhookResponse: { countersign: 'received' } });
});

test('a test call resumes nothing', async () => {
	const run = await asked();
	const result = await tell(run, { ...run.tasks[0], status: 'test' });
	assert.deepEqual(result, { webhookResponse: { countersign: 'received' } });
});

test('a forged call resumes nothing', async () => {
	const run = await asked();
	const forged = await new FakeCountersign().signed({ ...run.tasks[0], status: 'approved' });
	const result = await receive(run.context.called(forged, { ask: run.state.ask }));
	assert.deepEqual(result, { noWebhookResponse: true });
	assert.equal(run.context.response.code, 401);
});

test('a genuine call about another task resumes nothing', async () => {
	const run = await asked();
	const result = await tell(run, { ...run.tasks[0], id: 'f'.repeat(24), status: 'approved' });
	assert.equal(result.workflowData, undefined);
	assert.equal(run.context.response.code, 404);
});

test('while Countersign is unavailable, the call is to be repeated and the execution waits', async () => {
	const run = await asked({ title: (item) => `Buy chair ${item}` }, [{}, {}]);
	countersign.end(run.tasks[1].id, 'approved');
	await tell(run, { ...run.tasks[0], status: 'test' });
	countersign.faults.push(...Array(4).fill('unavailable'));
	const result = await tell(run, { ...run.tasks[0], status: 'approved' });
	countersign.faults.length = 0;
	assert.equal(result.workflowData, undefined);
	assert.equal(run.context.response.code, 503);
});

test('JSON that is no task is no decision of another item', async () => {
	const run = await asked({ title: (item) => `Buy chair ${item}` }, [{}, {}]);
	await tell(run, { ...run.tasks[0], status: 'test' });
	countersign.faults.push('json');
	const result = await tell(run, { ...run.tasks[0], status: 'approved' });
	assert.equal(result.workflowData, undefined);
	assert.equal(run.context.response.code, 503);
});
