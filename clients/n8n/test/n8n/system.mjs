import { base, People } from './countersign.mjs';
import { N8n } from './n8n.mjs';
import { Proxy } from './proxy.mjs';
import { Sink } from './sink.mjs';

/** A real n8n and a real Countersign, with proxies between them, and a sink for results. */
export class System {
	static async start() {
		if (!base) throw new Error('set BASE, ADMIN_USER and ADMIN_PASSWORD to those of a running Countersign');
		const system = new System();
		system.people = await People.create();
		system.key = await system.people.makeKey();
		system.sink = await new Sink().start();
		system.toCountersign = await new Proxy(base).start();
		system.n8n = await N8n.create();
		system.toN8n = await new Proxy(system.n8n.url).start();
		system.n8n.webhookUrl = system.toN8n.url;
		system.n8n.launch();
		await system.n8n.ready();
		await system.n8n.setUp();
		system.credential = await system.n8n.addCredential('countersignApi', 'Countersign', system.credentialData());
		return system;
	}

	credentialData(key = this.key.key) {
		return { url: this.toCountersign.url, apiKey: key };
	}

	async stop() {
		await this.n8n?.stop();
		await Promise.all([this.toN8n, this.toCountersign, this.sink].map((server) => server?.stop()));
		this.n8n?.remove();
	}

	/** The calls that Countersign has made to resume executions. */
	get resumes() {
		return this.toN8n.calls.filter(({ path }) => path.startsWith('/webhook-waiting/'));
	}
}
