import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { after, before, describe, test } from 'node:test';

import { api, eventually } from './countersign.mjs';
import { System } from './system.mjs';
import { link, report } from './workflows.mjs';

const FILE = readFileSync(new URL('../../workflows/ask-and-wait.json', import.meta.url), 'utf8');

describe("the workflow file with n8n's own nodes", () => {
	let system, people, n8n, sink, key;

	before(async () => {
		system = await System.start();
		({ people, n8n, sink } = system);
		// The key of a flow with an own requester needs no more.
		const { key: value } = await people.makeKey(['tasks:read', 'tasks:write']);
		key = await n8n.addCredential('httpHeaderAuth', 'Countersign key', { name: 'Authorization', value: `Bearer ${value}` });
	});
	after(() => system?.stop());

	/** The file as a user would fill it in, with reports in place of *Go On* and *Stop*. `asks` says how often it asks. */
	async function add(asks = 1) {
		const workflow = JSON.parse(FILE);
		const title = `file ${randomBytes(4).toString('hex')}`;
		const path = `/${title.replace(' ', '-')}`;
		const find = (name) => workflow.nodes.find((node) => node.name === name);
		find('Start').parameters.path = path.slice(1);
		const given = { countersign: system.toCountersign.url, title, requester: people.asks, approver: people.decides };
		for (const field of find('Settings').parameters.assignments.assignments) field.value = given[field.name];
		for (const { credentials } of workflow.nodes) {
			if (credentials) credentials.httpHeaderAuth = { id: key.id, name: key.name };
		}
		for (const [name, end] of [['Go On', 'approved'], ['Stop', 'stopped']]) {
			const place = workflow.nodes.indexOf(find(name));
			workflow.nodes[place] = { ...report(sink, `${path}/${end}`, name), id: workflow.nodes[place].id };
		}
		if (asks === 2) {
			find('Settings').parameters.assignments.assignments[1].value = `=${title} {{ $runIndex }}`;
			// After the first approval it asks again.
			workflow.connections['Go On'] = link('Settings');
		}
		const id = await n8n.addWorkflow(workflow);
		await n8n.trigger(path.slice(1));
		return { id, title, path };
	}

	test('it goes on after an approval, and stops after a rejection', async () => {
		for (const [verb, end] of [['approve', 'approved'], ['reject', 'stopped']]) {
			const { title, path, id } = await add();
			const task = await people.pending(title);
			await n8n.waiting(id);
			await people.decide(task, verb, 'Because.');
			const result = await sink.first(`${path}/${end}`);
			assert.deepEqual([result.id, result.comment, result.decidedBy], [task.id, 'Because.', people.decides]);
			assert.equal(sink.received.filter((entry) => entry.path.startsWith(path)).length, 1);
			const [delivery] = await people.deliveries(task);
			assert.equal(delivery.status, 'sent');
		}
	});

	test('it stops after a withdrawal', async () => {
		const { title, path, id } = await add();
		const task = await people.pending(title);
		await n8n.waiting(id);
		await people.cancel(task, 'No longer.');
		assert.equal((await sink.first(`${path}/stopped`)).status, 'cancelled');
	});

	test('a decision before the Wait is refused with 409, and repeated', async () => {
		let early;
		system.toCountersign.beforeResponse = async ({ method, path, body }) => {
			if (method !== 'POST' || path !== '/people-task/tasks') return;
			system.toCountersign.beforeResponse = async () => {};
			early = await people.pending(JSON.parse(body).title);
			await people.decide(early, 'approve');
			await eventually('n8n refuses the call', () => system.resumes.some((call) => call.status === 409 && call.body.includes(early.id)));
		};
		const { path } = await add();
		assert.equal((await sink.first(`${path}/approved`)).id, early.id);
	});

	test('neither the repeat of a call nor a forged one resumes for good', async () => {
		const { title, path, id } = await add(2);
		const first = await people.pending(`${title} 0`);
		await n8n.waiting(id);
		await people.decide(first, 'approve');
		const second = await people.pending(`${title} 1`);
		await n8n.waiting(id);

		const reads = () => system.toCountersign.calls.filter((call) => call.path.includes(`/${second.id}?`)).length;
		const [delivery] = await people.deliveries(first);
		await people.redeliver(delivery);
		// n8n goes on, sees that the second question is pending, and waits again.
		await eventually('the second question is read', () => reads() === 1);
		await n8n.waiting(id);
		const [webhook] = await api('GET', `/people-task/tasks/${second.id}/webhooks`, { token: people.asksToken });
		const body = JSON.stringify({ ...second, status: 'approved' });
		const forged = await fetch(webhook.url, { method: 'POST', headers: { 'Content-Type': 'application/json' }, body });
		assert.equal(forged.status, 200);
		await eventually('the second question is read again', () => reads() === 2);
		await n8n.waiting(id);
		assert.equal(sink.at(`${path}/approved`).length, 1);
		assert.equal(sink.at(`${path}/stopped`).length, 0);

		await people.decide(second, 'reject');
		assert.equal((await sink.first(`${path}/stopped`)).id, second.id);
	});

	test('a decision while n8n starts arrives, though n8n answers 200 with a page', async () => {
		const { title, path, id } = await add();
		const task = await people.pending(title);
		await n8n.waiting(id);
		await n8n.stop();
		const before = system.resumes.length;
		system.toN8n.holds = true;
		n8n.launch();
		await eventually('n8n begins to start', () => n8n.readLog().includes('Initializing n8n process'), 240);
		await people.decide(task, 'approve');
		await n8n.ready();
		system.toN8n.holds = false;
		assert.equal((await sink.first(`${path}/approved`, 120)).id, task.id);
		const [page] = system.resumes.slice(before).filter(({ body }) => body.includes(task.id));
		assert.deepEqual([page.status, page.type.split(';')[0]], [200, 'text/html']);
		assert.match(page.answer, /n8n is starting up/);
	});
});
