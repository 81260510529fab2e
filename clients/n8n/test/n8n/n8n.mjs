import { execFileSync, spawn } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { createWriteStream, existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';

import { eventually } from './countersign.mjs';

const PACKAGE = fileURLToPath(new URL('../..', import.meta.url));
/** Where `install-n8n` has installed n8n. */
const FOLDER = resolve(process.env.N8N_FOLDER ?? join(PACKAGE, '../../.local/engines/n8n'));
/** How long n8n may take to start, in seconds. */
const START_TIME = 240;
const DISABLED =
	'mcp-registry,instance-ai,agents,workflow-builder,chat-hub,quick-connect,insights,external-secrets,otel,sso-oidc,sso-saml,ldap,log-streaming,source-control';

async function freePort() {
	const server = createServer();
	await new Promise((done) => server.listen(0, '127.0.0.1', done));
	const { port } = server.address();
	await new Promise((done) => server.close(done));
	return port;
}

/** A real n8n with the packed package in it, and data of its own, on loopback. */
export class N8n {
	#process;
	#cookie;

	static async create() {
		const n8n = new N8n();
		n8n.folder = mkdtempSync(join(tmpdir(), 'countersign-n8n-'));
		n8n.port = await freePort();
		n8n.brokerPort = await freePort();
		n8n.url = `http://127.0.0.1:${n8n.port}`;
		n8n.log = join(n8n.folder, 'log');
		n8n.#installPackage();
		return n8n;
	}

	/** Puts the packed package where n8n puts community nodes. It has no dependencies. */
	#installPackage() {
		const place = join(this.folder, '.n8n/nodes/node_modules/n8n-nodes-countersign');
		mkdirSync(place, { recursive: true });
		const packed = execFileSync('npm', ['pack', '--ignore-scripts', '--json', '--pack-destination', this.folder], { cwd: PACKAGE });
		const listed = JSON.parse(packed);
		const [{ filename }] = Array.isArray(listed) ? listed : Object.values(listed);
		execFileSync('tar', ['xzf', join(this.folder, filename), '-C', place, '--strip-components=1']);
	}

	/** Starts the process. `ready` waits until it works. */
	launch() {
		const node = join(FOLDER, 'bin/node');
		if (!existsSync(node)) throw new Error(`n8n is not installed in ${FOLDER}: run test/install-n8n`);
		const out = createWriteStream(this.log, { flags: 'a' });
		this.#process = spawn(node, [join(FOLDER, 'app/node_modules/n8n/bin/n8n'), 'start'], {
			stdio: ['ignore', 'pipe', 'pipe'],
			env: {
				PATH: `${join(FOLDER, 'bin')}:${process.env.PATH}`,
				HOME: this.folder,
				N8N_USER_FOLDER: this.folder,
				N8N_PORT: String(this.port),
				N8N_LISTEN_ADDRESS: '127.0.0.1',
				N8N_HOST: '127.0.0.1',
				N8N_PROTOCOL: 'http',
				N8N_WEBHOOK_URL: `${this.webhookUrl}/`,
				N8N_RUNNERS_BROKER_PORT: String(this.brokerPort),
				N8N_RUNNERS_BROKER_LISTEN_ADDRESS: '127.0.0.1',
				N8N_SECURE_COOKIE: 'false',
				N8N_ENFORCE_SETTINGS_FILE_PERMISSIONS: 'false',
				GENERIC_TIMEZONE: 'Europe/Berlin',
				N8N_DIAGNOSTICS_ENABLED: 'false',
				N8N_VERSION_NOTIFICATIONS_ENABLED: 'false',
				N8N_TEMPLATES_ENABLED: 'false',
				N8N_PERSONALIZATION_ENABLED: 'false',
				N8N_HIRING_BANNER_ENABLED: 'false',
				N8N_COMMUNITY_PACKAGES_ENABLED: 'true',
				N8N_VERIFIED_PACKAGES_ENABLED: 'false',
				N8N_DISABLED_MODULES: DISABLED,
				// The test's servers are on loopback.
				N8N_SSRF_PROTECTION_ENABLED: 'false',
			},
		});
		this.#process.stdout.pipe(out);
		this.#process.stderr.pipe(out);
		this.#process.exited = new Promise((done) => this.#process.on('close', done));
	}

	async ready() {
		const isReady = async () => {
			if (this.#process.exitCode !== null) throw new Error(`n8n has ended: ${this.readLog().slice(-2000)}`);
			const response = await fetch(`${this.url}/healthz/readiness`).catch(() => undefined);
			return response?.ok && this.readLog().includes('Editor is now accessible');
		};
		this.logStart ??= 0;
		await eventually('n8n starts', isReady, START_TIME);
	}

	/** What n8n has logged since it was launched. */
	readLog() {
		return existsSync(this.log) ? readFileSync(this.log, 'utf8').slice(this.logStart ?? 0) : '';
	}

	async stop(signal = 'SIGTERM') {
		this.#process.kill(signal);
		await this.#process.exited;
		this.logStart = readFileSync(this.log, 'utf8').length;
	}

	remove() {
		rmSync(this.folder, { recursive: true, force: true, maxRetries: 5 });
	}

	/** Makes the owner, whose requests the others are. */
	async setUp() {
		const owner = { email: 'owner@example.com', firstName: 'Ada', lastName: 'Owner', password: `A1${randomBytes(12).toString('hex')}` };
		await this.rest('POST', '/owner/setup', owner);
	}

	/** Calls the interface of the editor. */
	async rest(method, path, body) {
		const headers = { 'Content-Type': 'application/json', ...(this.#cookie ? { Cookie: this.#cookie } : {}) };
		const response = await fetch(`${this.url}/rest${path}`, { method, headers, body: body && JSON.stringify(body) });
		const text = await response.text();
		if (!response.ok) throw new Error(`${method} ${path}: ${response.status} ${text.slice(0, 500)}`);
		this.#cookie ??= response.headers.getSetCookie()[0]?.split(';')[0];
		return JSON.parse(text).data;
	}

	async addCredential(type, name, data) {
		return await this.rest('POST', '/credentials', { type, name, data });
	}

	/** Adds a workflow, and activates it. */
	async addWorkflow(workflow) {
		const { id, versionId } = await this.rest('POST', '/workflows', { active: false, settings: {}, ...workflow });
		await this.rest('POST', `/workflows/${id}/activate`, { versionId });
		return id;
	}

	/** Calls a webhook that starts a workflow, as soon as it is registered: that takes a moment after the activation. */
	async trigger(path, body = {}) {
		const headers = { 'Content-Type': 'application/json' };
		await eventually(`the webhook ${path}`, async () => {
			const response = await fetch(`${this.url}/webhook/${path}`, { method: 'POST', headers, body: JSON.stringify(body) });
			if (!response.ok && response.status !== 404) throw new Error(`the workflow did not start: ${response.status}`);
			return response.ok;
		});
	}

	/** The newest execution of a workflow. */
	async execution(workflow) {
		const filter = encodeURIComponent(JSON.stringify({ workflowId: workflow }));
		const { results } = await this.rest('GET', `/executions?filter=${filter}&limit=1`);
		return results[0];
	}

	async waiting(workflow) {
		return await eventually('the execution waits', async () => {
			const execution = await this.execution(workflow);
			if (execution?.status === 'error') throw new Error(`the execution failed: ${await this.failure(execution.id)}`);
			return execution?.status === 'waiting' && execution;
		});
	}

	async failure(id) {
		const { data } = await this.rest('GET', `/executions/${id}`);
		return data.slice(0, 3000);
	}
}
