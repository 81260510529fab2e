import { randomBytes } from 'node:crypto';

const { BASE, ADMIN_USER, ADMIN_PASSWORD } = process.env;
export const base = BASE?.replace(/\/+$/, '');

/** Waits until the function returns something, and returns that. */
export async function eventually(what, find, seconds = 30) {
	const end = Date.now() + seconds * 1000;
	for (;;) {
		const found = await find();
		if (found) return found;
		if (Date.now() > end) throw new Error(`${what}: not within ${seconds} seconds`);
		await new Promise((resolve) => setTimeout(resolve, 100));
	}
}

/** Calls the API of a real Countersign. */
export async function api(method, path, { token, body } = {}) {
	const response = await fetch(base + path, {
		method,
		headers: { 'Content-Type': 'application/json', ...(token ? { Authorization: `Bearer ${token}` } : {}) },
		body: body && JSON.stringify(body),
		signal: AbortSignal.timeout(60_000),
	});
	const result = await response.json();
	if (!response.ok) throw new Error(`${method} ${path}: ${response.status} ${result.code} ${result.detail}`);
	return result;
}

async function signIn(username, password) {
	return (await api('POST', '/user/auth', { body: { username, password } })).token;
}

/** Two users of a real Countersign: one who asks, with a key that does not decide, and one who decides. */
export class People {
	static async create() {
		const people = new People();
		people.admin = await signIn(ADMIN_USER, ADMIN_PASSWORD);
		const name = `n8n-${randomBytes(6).toString('hex')}`;
		const password = randomBytes(12).toString('hex');
		people.asks = `${name}-asks@example.com`;
		people.decides = `${name}-decides@example.com`;
		for (const email of [people.asks, people.decides]) {
			await api('POST', '/user', { token: people.admin, body: { email, password } });
		}
		people.asksToken = await signIn(people.asks, password);
		people.decidesToken = await signIn(people.decides, password);
		return people;
	}

	/** Makes a key, as the README of the package says. */
	async makeKey(scopes = ['tasks:read', 'tasks:write', 'users:read']) {
		return await api('POST', '/user/keys', { token: this.asksToken, body: { name: 'n8n', scopes } });
	}

	async revokeKey({ id }) {
		await api('DELETE', `/user/keys/${id}`, { token: this.asksToken });
	}

	/** The pending task with this title, as soon as there is one. */
	async pending(title) {
		return await eventually(`the task ${title}`, async () => {
			const query = `?filter=${encodeURIComponent(`title:${title}`)}&filter=status:pending`;
			return (await api('GET', `/people-task/tasks${query}`, { token: this.decidesToken }))[0];
		}, 60);
	}

	async decide(task, verb, comment) {
		const body = comment === undefined ? {} : { comment };
		return await api('PUT', `/people-task/tasks/${task.id}/${verb}`, { token: this.decidesToken, body });
	}

	async cancel(task, reason) {
		await api('POST', `/people-task/tasks/${task.id}/cancel`, { token: this.asksToken, body: { reason } });
	}

	async deliveries(task) {
		return await api('GET', `/people-task/tasks/${task.id}/deliveries`, { token: this.asksToken });
	}

	async redeliver({ id }) {
		await api('POST', `/people-task/deliveries/${id}/redeliver`, { token: this.asksToken });
	}
}
