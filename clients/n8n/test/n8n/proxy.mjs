import { createServer, request as forward } from 'node:http';

/** How long a call is held for a server that does not listen yet, in milliseconds. */
const HOLD = 9_000;

/**
 * An HTTP proxy that records what passes and can interfere. Tests see by it what Countersign was answered, and stop a
 * request or a response where a crash would.
 */
export class Proxy {
	/** What passed: `{ method, path, body, status, type, answer }`. */
	calls = [];
	/** How many calls got no response. */
	lost = 0;
	/** Called with each call before its response goes back, which then waits for the promise and is lost if that fails. */
	beforeResponse = async () => {};
	/** Whether calls wait until the server listens, and then are the first that it gets. */
	holds = false;
	#server;

	constructor(target) {
		this.target = target;
	}

	async start() {
		this.#server = createServer((request, response) => {
			this.#handle(request, response).catch(() => {
				this.lost += 1;
				response.destroy();
			});
		});
		await new Promise((resolve) => this.#server.listen(0, '127.0.0.1', resolve));
		this.url = `http://127.0.0.1:${this.#server.address().port}`;
		return this;
	}

	async stop() {
		this.#server.closeAllConnections();
		await new Promise((resolve) => this.#server.close(resolve));
	}

	async #handle(request, response) {
		const chunks = [];
		for await (const chunk of request) chunks.push(chunk);
		const body = Buffer.concat(chunks);
		const call = { method: request.method, path: request.url, headers: request.headers, body: body.toString() };
		const answer = await this.#forward(call, body);
		const { status, headers } = answer;
		Object.assign(call, { status, type: headers['content-type'] ?? '', answer: answer.body.toString() });
		this.calls.push(call);
		await this.beforeResponse(call);
		delete headers['transfer-encoding'];
		response.writeHead(status, { ...headers, 'content-length': answer.body.length });
		response.end(answer.body);
	}

	async #forward(call, body) {
		const end = Date.now() + HOLD;
		for (;;) {
			try {
				return await this.#send(call, body);
			} catch (error) {
				if (!this.holds || Date.now() > end) throw error;
				await new Promise((resolve) => setTimeout(resolve, 2));
			}
		}
	}

	#send({ method, path, headers }, body) {
		return new Promise((resolve, reject) => {
			const options = { method, headers: { ...headers, host: new URL(this.target).host, connection: 'close' } };
			const sent = forward(`${this.target}${path}`, options, async (response) => {
				const chunks = [];
				for await (const chunk of response) chunks.push(chunk);
				resolve({ status: response.statusCode, headers: { ...response.headers }, body: Buffer.concat(chunks) });
			});
			sent.on('error', reject);
			sent.end(body);
		});
	}
}
