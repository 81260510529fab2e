import { createServer } from 'node:http';

import { eventually } from './countersign.mjs';

/** A server to which workflows send what they come to. */
export class Sink {
	received = [];
	#server;

	async start() {
		this.#server = createServer(async (request, response) => {
			const chunks = [];
			for await (const chunk of request) chunks.push(chunk);
			this.received.push({ path: request.url, body: JSON.parse(Buffer.concat(chunks)) });
			response.setHeader('Content-Type', 'application/json');
			response.end('{}');
		});
		await new Promise((resolve) => this.#server.listen(0, '127.0.0.1', resolve));
		this.url = `http://127.0.0.1:${this.#server.address().port}`;
		return this;
	}

	async stop() {
		this.#server.closeAllConnections();
		await new Promise((resolve) => this.#server.close(resolve));
	}

	/** What was sent to a path. */
	at(path) {
		return this.received.filter((entry) => entry.path === path).map(({ body }) => body);
	}

	async first(path, seconds = 60) {
		return await eventually(`a result at ${path}`, () => this.at(path)[0], seconds);
	}
}
