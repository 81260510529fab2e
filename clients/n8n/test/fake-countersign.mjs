import { generateKeyPairSync, randomBytes, randomUUID, sign } from 'node:crypto';
import { createServer } from 'node:http';

const KEY = `csk_${'1'.repeat(24)}${'a'.repeat(36)}`;

/**
 * The parts of Countersign's API that the nodes call, over real HTTP, with signed webhooks. Unit tests use it to lose a
 * response or to send a forged call; the tests in `test/n8n` use a real Countersign.
 */
export class FakeCountersign {
	tasks = new Map();
	webhooks = new Map();
	/** Every request as `METHOD path`. */
	requests = [];
	/** What happens to the next requests: `unavailable`, `page`, `lose-response` or `lose-request`. */
	faults = [];
	revoked = false;
	/** How many tasks fit into a page of a list. */
	longestPage = 100;
	/** Is called after a page of a list was read. */
	afterList = undefined;
	key = KEY;
	#pair = generateKeyPairSync('ed25519');
	#replays = new Map();
	#server;

	async start() {
		this.#server = createServer((request, response) => this.#respond(request, response));
		await new Promise((resolve) => this.#server.listen(0, '127.0.0.1', resolve));
		this.url = `http://127.0.0.1:${this.#server.address().port}`;
		return this;
	}

	async stop() {
		this.#server.closeAllConnections();
		await new Promise((resolve) => this.#server.close(resolve));
	}

	/** Ends a task without calling its webhooks. */
	end(id, status, comment = null) {
		const decided = { decidedBy: 'grace@example.com', decisionMade: new Date().toISOString() };
		const mtime = decided.decisionMade;
		Object.assign(this.tasks.get(id), { status, comment, mtime, ...decided });
	}

	/** What a webhook of this task would send, signed. */
	signed(body, now = Date.now()) {
		const text = typeof body === 'string' ? body : JSON.stringify(body);
		const [id, timestamp] = [randomUUID(), String(Math.floor(now / 1000))];
		const signature = sign(null, Buffer.from(`${id}.${timestamp}.${text}`), this.#pair.privateKey);
		const headers = {
			'webhook-id': id,
			'webhook-timestamp': timestamp,
			'webhook-signature': `v1,${randomBytes(32).toString('base64')} v1a,${signature.toString('base64')}`,
		};
		return { headers, rawBody: Buffer.from(text) };
	}

	get publicKey() {
		const der = this.#pair.publicKey.export({ format: 'der', type: 'spki' });
		return `whpk_${der.subarray(-32).toString('base64')}`;
	}

	async #respond(request, response) {
		const url = new URL(request.url, this.url);
		const chunks = [];
		for await (const chunk of request) chunks.push(chunk);
		this.requests.push(`${request.method} ${url.pathname}`);
		const fault = this.faults.shift();
		if (fault === 'lose-request') return request.socket.destroy();
		if (fault === 'unavailable') return send(response, 503, { code: 'unavailable', detail: 'Unavailable.' });
		if (typeof fault === 'number') return response.writeHead(fault).end('<html>A proxy</html>');
		if (fault === 'json') return send(response, 200, { status: 'ok' });
		if (fault === 'page') return response.end('<html>n8n is not here</html>');
		const body = chunks.length > 0 ? JSON.parse(Buffer.concat(chunks)) : {};
		const [status, content] = this.#process(request, url, body);
		if (fault === 'lose-response') return request.socket.destroy();
		send(response, status, content);
	}

	#process(request, url, body) {
		if (url.pathname === '/.well-known/webhook-keys.json') return [200, { keys: [{ whpk: this.publicKey }] }];
		const isKnown = request.headers.authorization === `Bearer ${KEY}` && !this.revoked;
		if (!isKnown) return problem(401, 'invalid-key', `The key is invalid.`);
		if (url.pathname === '/user') return [200, { email: 'ada@example.com' }];
		if (url.pathname === '/people-task/tasks' && request.method === 'GET') return this.#list(url);
		if (url.pathname === '/people-task/tasks') return this.#create(body, request.headers['idempotency-key']);
		const [, webhook] = /^\/people-task\/webhooks\/(\w+)$/.exec(url.pathname) ?? [];
		if (webhook) return this.webhooks.delete(webhook) ? [200, {}] : problem(404, 'not-found');
		const [, id, verb] = /^\/people-task\/tasks\/(\w+)(\/cancel)?$/.exec(url.pathname) ?? [];
		const task = this.tasks.get(id);
		if (!task) return problem(404, 'not-found');
		if (verb && task.status !== 'pending') return problem(409, 'task-already-resolved');
		if (verb) this.end(id, 'cancelled', body.reason ?? null);
		return [200, task];
	}

	#create(body, key) {
		if (this.#replays.has(key)) return [200, this.#replays.get(key)];
		if (body.title === '') {
			const errors = [{ field: 'title', code: 'blank', message: 'Must not be blank.' }];
			return [400, { code: 'validation-failed', detail: 'Invalid: title.', errors }];
		}
		const { webhooks = [], ...fields } = body;
		const created = new Date().toISOString();
		const task = { ...fields, id: randomBytes(12).toString('hex'), status: 'pending', created, mtime: created };
		this.tasks.set(task.id, task);
		const made = webhooks.map((webhook) => ({ ...webhook, id: randomBytes(12).toString('hex') }));
		for (const webhook of made) this.webhooks.set(webhook.id, { ...webhook, taskId: task.id });
		this.#replays.set(key, { ...task, approverSecret: randomBytes(32).toString('hex'), webhooks: made });
		return [200, this.#replays.get(key)];
	}

	#list(url) {
		const [limit, offset] = ['limit', 'offset'].map((name) => Number(url.searchParams.get(name)));
		const tasks = [...this.tasks.values()].sort((one, other) => (one.mtime < other.mtime ? 1 : -1));
		const page = tasks.slice(offset, offset + Math.min(limit, this.longestPage));
		this.afterList?.();
		return [200, page];
	}
}

function problem(status, code, detail = code) {
	return [status, { status, code, detail, title: code, type: `urn:countersign:problem:${code}` }];
}

function send(response, status, content) {
	if (response.destroyed) return;
	response.writeHead(status, { 'Content-Type': 'application/json' });
	response.end(JSON.stringify(content));
}
