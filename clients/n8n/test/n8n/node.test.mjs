import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { after, before, describe, test } from 'node:test';

import { api, eventually } from './countersign.mjs';
import { System } from './system.mjs';
import { chain, countersign, link, node, report, start } from './workflows.mjs';

describe('the node in a real n8n', () => {
	let system, people, n8n, sink;

	before(async () => {
		system = await System.start();
		({ people, n8n, sink } = system);
	});
	after(() => system?.stop());

	const unique = (name) => `${name} ${randomBytes(4).toString('hex')}`;

	function ask(title, more = {}, name = 'Ask', credential = system.credential) {
		return countersign(name, credential, { operation: 'ask', title, approver: people.decides, ...more });
	}

	/** Starts a workflow that asks and reports, and returns when it waits. */
	async function asked(name, more = {}) {
		const title = unique(name);
		const path = `/${title.replaceAll(' ', '-')}`;
		const workflow = await n8n.addWorkflow(chain(title, start(path.slice(1)), ask(title, more), report(sink, path)));
		await n8n.trigger(path.slice(1));
		const task = await people.pending(title);
		const execution = await n8n.waiting(workflow);
		return { title, path, workflow, task, execution };
	}

	test('the credential is tested', async () => {
		const tested = async (data) => {
			const credentials = { id: '', name: 'Countersign', type: 'countersignApi', data };
			return (await n8n.rest('POST', '/credentials/test', { credentials })).status;
		};
		assert.equal(await tested(system.credentialData()), 'OK');
		const revoked = await people.makeKey();
		await people.revokeKey(revoked);
		assert.equal(await tested(system.credentialData(revoked.key)), 'Error');
	});

	test('an approval resumes', async () => {
		const { task, path } = await asked('approve');
		await people.decide(task, 'approve', 'Fine.');
		const result = await sink.first(path);
		assert.deepEqual([result.status, result.approved, result.comment], ['approved', true, 'Fine.']);
		assert.deepEqual([result.id, result.decidedBy, result.requester], [task.id, people.decides, people.asks]);
	});

	test('a rejection resumes with its comment', async () => {
		const { task, path } = await asked('reject');
		await people.decide(task, 'reject', 'Zu teuer: 300 €');
		const result = await sink.first(path);
		assert.deepEqual([result.status, result.approved, result.comment], ['rejected', false, 'Zu teuer: 300 €']);
	});

	test('a withdrawal resumes with its reason', async () => {
		const { task, path } = await asked('cancel');
		await people.cancel(task, 'Bought already.');
		const result = await sink.first(path);
		assert.deepEqual([result.status, result.approved, result.comment], ['cancelled', false, 'Bought already.']);
	});

	test('a due date resumes and withdraws the task, and no delivery is left over', async () => {
		// As the editor has it: without an offset, in the time zone of n8n.
		const decisionBy = new Date(Date.now() + 5_000).toLocaleString('sv-SE', { timeZone: 'Europe/Berlin' });
		const { task, path } = await asked('due', { decisionBy, whenDue: 'stop' });
		const result = await sink.first(path);
		assert.deepEqual([result.status, result.approved], ['due', false]);
		const { status } = await api('GET', `/people-task/tasks/${task.id}`, { token: people.asksToken });
		assert.equal(status, 'cancelled');
		await eventually('all is delivered', async () => (await people.deliveries(task)).every((one) => one.status === 'sent'));
	});

	test('several items go on when all have been decided', async () => {
		const title = unique('items');
		const path = `/${title.replaceAll(' ', '-')}`;
		const items = node('Items', 'n8n-nodes-base.splitOut', { fieldToSplitOut: 'body.items', options: {} });
		const asking = ask(`=${title} {{ $json['body.items'] ?? $json.items }}`);
		const workflow = await n8n.addWorkflow(chain(title, start(path.slice(1)), items, asking, report(sink, path)));
		await n8n.trigger(path.slice(1), { items: ['one', 'two', 'three'] });
		const [one, two, three] = [await people.pending(`${title} one`), await people.pending(`${title} two`), await people.pending(`${title} three`)];
		const { id } = await n8n.waiting(workflow);
		await people.decide(two, 'approve');
		await people.decide(one, 'reject', 'No.');
		await eventually('two are delivered', async () => {
			const deliveries = [...(await people.deliveries(one)), ...(await people.deliveries(two))];
			return deliveries.length === 2 && deliveries.every(({ status }) => status === 'sent');
		});
		assert.equal((await n8n.execution(workflow)).status, 'waiting');
		await people.decide(three, 'approve');
		await sink.first(path);
		await eventually('the execution ends', async () => (await n8n.execution(workflow)).status === 'success');
		assert.equal((await n8n.execution(workflow)).id, id);
		const results = sink.at(path).map(({ title: asked, status }) => `${asked.split(' ').pop()} ${status}`);
		assert.deepEqual(results, ['one rejected', 'two approved', 'three approved']);
	});

	test('it works in the editor, and whatever the name of the node is', async () => {
		const title = unique('editor');
		const path = `/${title.replaceAll(' ', '-')}`;
		const manual = node('Manual', 'n8n-nodes-base.manualTrigger', {});
		const workflow = chain(title, manual, ask(title, {}, `Frag "Grace's" \\ Büro`), report(sink, path));
		const { id } = await n8n.rest('POST', '/workflows', { active: false, settings: {}, ...workflow });
		await n8n.rest('POST', `/workflows/${id}/run`, { triggerToStartFrom: { name: 'Manual' } });
		const task = await people.pending(title);
		assert.equal((await n8n.waiting(id)).mode, 'manual');
		await people.decide(task, 'approve');
		assert.equal((await sink.first(path)).status, 'approved');
	});

	test('get and cancel', async () => {
		const { task } = await asked('operations');
		const path = `/operations-${task.id}`;
		const get = countersign('Get', system.credential, { operation: 'get', id: task.id });
		const cancel = countersign('Cancel', system.credential, { operation: 'cancel', id: task.id, reason: 'No longer.' });
		const nodes = [start(path.slice(1)), get, report(sink, path), cancel, report(sink, `${path}/cancelled`, 'Report again')];
		await n8n.addWorkflow(chain(path, ...nodes));
		await n8n.trigger(path.slice(1));
		const cancelled = await sink.first(`${path}/cancelled`);
		assert.deepEqual([cancelled.status, cancelled.comment], ['cancelled', 'No longer.']);
		assert.equal(sink.at(path)[0].status, 'pending');
		// Withdrawing it again is no error.
		await n8n.trigger(path.slice(1));
		await eventually('the second run', () => sink.at(`${path}/cancelled`)[1]);
	});

	test('a decision before the node waits is refused, and repeated until it waits', async () => {
		let early;
		system.toCountersign.beforeResponse = async ({ method, path, body }) => {
			if (method !== 'POST' || path !== '/people-task/tasks') return;
			system.toCountersign.beforeResponse = async () => {};
			early = await people.pending(JSON.parse(body).title);
			await people.decide(early, 'approve');
			await eventually('n8n refuses the call', () => system.resumes.some((call) => call.status === 409 && call.body.includes(early.id)));
		};
		const title = unique('early');
		const path = `/${title.replaceAll(' ', '-')}`;
		await n8n.addWorkflow(chain(title, start(path.slice(1)), ask(title), report(sink, path)));
		await n8n.trigger(path.slice(1));
		assert.equal((await sink.first(path)).status, 'approved');
		const answers = system.resumes.filter(({ body }) => body.includes(early.id)).map(({ status }) => status);
		assert.deepEqual([answers[0], answers.at(-1)], [409, 200]);
	});

	test('a question is asked once, though Countersign was away and a response was lost', async () => {
		const proxy = system.toCountersign;
		const [target, lost] = [proxy.target, proxy.lost];
		const title = unique('once');
		const path = `/${title.replaceAll(' ', '-')}`;
		const workflow = await n8n.addWorkflow(chain(title, start(path.slice(1)), ask(title), report(sink, path)));
		proxy.target = 'http://127.0.0.1:1';
		await n8n.trigger(path.slice(1));
		await eventually('a request fails', () => proxy.lost > lost);
		proxy.beforeResponse = async ({ method, path: called }) => {
			if (method !== 'POST' || called !== '/people-task/tasks') return;
			proxy.beforeResponse = async () => {};
			throw new Error('the response is lost');
		};
		proxy.target = target;
		await n8n.waiting(workflow);
		const filter = encodeURIComponent(`title:${title}`);
		const tasks = await api('GET', `/people-task/tasks?filter=${filter}`, { token: people.asksToken });
		assert.equal(tasks.length, 1);
		await people.decide(tasks[0], 'approve');
		assert.equal((await sink.first(path)).id, tasks[0].id);
	});

	test('the repeat of a call does not resume the next wait of the same node', async () => {
		const title = unique('loop');
		const path = `/${title.replaceAll(' ', '-')}`;
		const loop = chain(title, start(path.slice(1)), ask(`=${title} {{ $runIndex }}`), report(sink, path));
		// From its report, the workflow goes back to the question twice.
		const again = node('Again?', 'n8n-nodes-base.if', {
			conditions: {
				options: { caseSensitive: true, leftValue: '', typeValidation: 'loose', version: 2 },
				combinator: 'and',
				conditions: [{ id: '1', leftValue: '={{ $runIndex }}', rightValue: 1, operator: { type: 'number', operation: 'lt' } }],
			},
			options: {},
		}, { typeVersion: 2.2 });
		loop.nodes.push(again);
		loop.connections.Report = link('Again?');
		loop.connections['Again?'] = link('Ask');
		const workflow = await n8n.addWorkflow(loop);
		await n8n.trigger(path.slice(1));
		const first = await people.pending(`${title} 0`);
		await n8n.waiting(workflow);
		await people.decide(first, 'approve');
		const second = await people.pending(`${title} 1`);
		await n8n.waiting(workflow);

		const [delivery] = await people.deliveries(first);
		const before = system.resumes.length;
		await people.redeliver(delivery);
		const repeat = await eventually('the repeat', () => system.resumes[before]);
		assert.deepEqual([repeat.status, JSON.parse(repeat.answer)], [200, { countersign: 'received' }]);
		assert.equal((await n8n.execution(workflow)).status, 'waiting');
		assert.equal(sink.at(path).length, 1);

		await people.decide(second, 'reject');
		await eventually('both results', () => sink.at(path).length === 2);
		assert.deepEqual(sink.at(path).map(({ status }) => status), ['approved', 'rejected']);
	});

	test('the repeat of a call does not resume another node', async () => {
		const title = unique('two');
		const path = `/${title.replaceAll(' ', '-')}`;
		const nodes = [start(path.slice(1)), ask(`${title} first`, {}, 'First'), ask(`${title} second`, {}, 'Second'), report(sink, path)];
		const workflow = await n8n.addWorkflow(chain(title, ...nodes));
		await n8n.trigger(path.slice(1));
		const first = await people.pending(`${title} first`);
		await n8n.waiting(workflow);
		await people.decide(first, 'approve');
		const second = await people.pending(`${title} second`);
		await n8n.waiting(workflow);
		const [delivery] = await people.deliveries(first);
		const before = system.resumes.length;
		await people.redeliver(delivery);
		assert.equal((await eventually('the repeat', () => system.resumes[before])).status, 404);
		assert.equal((await n8n.execution(workflow)).status, 'waiting');
		await people.decide(second, 'reject');
		assert.equal((await sink.first(path)).status, 'rejected');
	});

	test('a forged call and a test call resume nothing', async () => {
		const { task, path, workflow } = await asked('forged');
		const [webhook] = await api('GET', `/people-task/tasks/${task.id}/webhooks`, { token: people.asksToken });
		const body = JSON.stringify({ ...task, status: 'approved' });
		const forge = async (url, headers) => (await fetch(url, { method: 'POST', headers: { 'Content-Type': 'application/json', ...headers }, body })).status;
		const headers = { 'webhook-id': 'x', 'webhook-timestamp': String(Math.floor(Date.now() / 1000)), 'webhook-signature': `v1a,${'A'.repeat(86)}==` };
		assert.equal(await forge(webhook.url, headers), 401);
		assert.equal(await forge(webhook.url, {}), 401);
		assert.equal(await forge(webhook.url.replace(/signature=[^&]+/, 'signature=0'), headers), 401);
		const tried = await api('POST', `/people-task/webhooks/${webhook.id}/test`, { token: people.asksToken });
		assert.deepEqual([tried.success, tried.statusCode], [true, 200]);
		assert.equal((await n8n.execution(workflow)).status, 'waiting');
		assert.equal(sink.at(path).length, 0);
		await people.decide(task, 'reject');
		assert.equal((await sink.first(path)).status, 'rejected');
	});

	test('a revoked key keeps no decision away, and asks no more', async () => {
		const key = await people.makeKey();
		const credential = await n8n.addCredential('countersignApi', 'Revoked', system.credentialData(key.key));
		const title = unique('revoked');
		const path = `/${title.replaceAll(' ', '-')}`;
		const workflow = await n8n.addWorkflow(chain(title, start(path.slice(1)), ask(title, {}, 'Ask', credential), report(sink, path)));
		await n8n.trigger(path.slice(1));
		const task = await people.pending(title);
		await n8n.waiting(workflow);
		await people.revokeKey(key);
		await people.decide(task, 'approve');
		assert.equal((await sink.first(path)).status, 'approved');

		await n8n.trigger(path.slice(1));
		// After many unknown keys from the same network, Countersign first asks to wait, and the node does.
		await eventually('the second run fails', async () => (await n8n.execution(workflow)).status === 'error', 240);
		const { id } = await n8n.execution(workflow);
		const failure = await n8n.failure(id);
		assert.match(failure, /invalid-key|too-many-attempts/);
		assert.ok(!failure.includes(key.key));
		assert.ok(!n8n.readLog().includes(key.key));
	});

	test('the trigger starts a workflow for each decision', { timeout: 300_000 }, async () => {
		const path = `/trigger-${randomBytes(4).toString('hex')}`;
		const credentials = { countersignApi: { id: system.credential.id, name: system.credential.name } };
		const parameters = {
			events: ['approved', 'rejected'],
			role: 'creator',
			pollTimes: { item: [{ mode: 'everyMinute' }] },
		};
		const trigger = node('Trigger', 'n8n-nodes-countersign.countersignTrigger', parameters, { credentials });
		const polls = () => system.toCountersign.calls.filter((call) => call.path.includes('sort=mtime')).length;
		const { task } = await asked('trigger');
		await n8n.addWorkflow(chain(path, trigger, report(sink, path)));
		// The first one is at the activation, the others are each minute.
		await eventually('the first poll', () => polls() > 0, 60);
		await people.decide(task, 'approve', 'Good.');
		const result = await eventually('the decision', () => sink.at(path).find(({ id }) => id === task.id), 90);
		assert.deepEqual([result.event, result.comment], ['approved', 'Good.']);
		const before = polls();
		await eventually('another poll', () => polls() > before, 90);
		assert.equal(sink.at(path).filter(({ id }) => id === task.id).length, 1);
	});

	test('a decision while n8n starts arrives, though n8n answers 200 with a page', async () => {
		const { task, path } = await asked('starts');
		await n8n.stop('SIGKILL');
		const before = system.resumes.length;
		system.toN8n.holds = true;
		n8n.launch();
		await eventually('n8n begins to start', () => n8n.readLog().includes('Initializing n8n process'), 240);
		await people.decide(task, 'approve');
		await n8n.ready();
		system.toN8n.holds = false;
		assert.equal((await sink.first(path, 120)).status, 'approved');
		const answers = system.resumes.slice(before).filter(({ body }) => body.includes(task.id));
		const [page] = answers;
		assert.deepEqual([page.status, page.type.split(';')[0]], [200, 'text/html']);
		assert.match(page.answer, /n8n is starting up/);
		assert.deepEqual(JSON.parse(answers.at(-1).answer), { countersign: 'received' });
	});
});
