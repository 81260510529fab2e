/** What n8n gives to a node, as far as the nodes use it, with real HTTP. `resume` is `$execution.resumeUrl`. */
export class Context {
	resume = 'http://n8n.test/webhook-waiting/7?signature=abc';
	nodeContext = {};
	staticData = {};
	waits = false;
	logged = [];
	logger = { warn: (...entry) => this.logged.push(JSON.stringify(entry)) };
	mode = 'trigger';

	constructor(countersign, parameters = {}, items = [{}]) {
		this.countersign = countersign;
		this.parameters = parameters;
		this.items = items;
	}

	helpers = {
		async httpRequestWithAuthentication(name, { method, baseURL, url, qs = {}, headers, body }) {
			const query = new URLSearchParams(qs).toString();
			const { countersign } = this;
			// The errors of n8n's HTTP client hold the whole request, with the key.
			const response = await fetch(`${baseURL}${url}${query && `?${query}`}`, {
				method,
				headers: { ...headers, 'Content-Type': 'application/json', Authorization: `Bearer ${countersign.key}` },
				body: body && JSON.stringify(body),
			}).catch((error) => Promise.reject(Object.assign(error, { message: `failed with ${countersign.key}` })));
			const text = await response.text();
			let parsed = text;
			try {
				parsed = JSON.parse(text);
			} catch {}
			return { statusCode: response.status, headers: Object.fromEntries(response.headers), body: parsed };
		},
	};

	getNode = () => ({ id: 'node-1', name: 'Ask "Grace"', type: 'countersign', typeVersion: 1 });
	getCredentials = async () => ({ url: `${this.countersign.url}/`, apiKey: this.countersign.key });
	getInputData = () => this.items;
	getContext = () => this.nodeContext;
	getTimezone = () => 'Europe/Berlin';
	getMode = () => this.mode;
	getWorkflowStaticData = () => this.staticData;
	continueOnFail = () => false;
	putExecutionToWait = async () => void (this.waits = true);

	getNodeParameter(name, itemOrFallback, fallback) {
		const item = typeof itemOrFallback === 'number' ? itemOrFallback : 0;
		const value = this.parameters[name] ?? fallback;
		return typeof value === 'function' ? value(item) : value;
	}

	evaluateExpression(expression) {
		if (expression === '{{ $execution.resumeUrl }}') return this.resume;
		if (expression.includes('.context[')) return JSON.stringify(this.nodeContext.countersign);
		throw new Error(`unexpected expression: ${expression}`);
	}

	/** Turns this into the context of a call to the webhook. */
	called({ headers, rawBody }, query) {
		this.response = undefined;
		this.getHeaderData = () => headers;
		this.getQueryData = () => query;
		this.getBodyData = () => JSON.parse(rawBody);
		this.getRequestObject = () => ({ rawBody });
		const response = { status: (code) => ((this.response = { code }), response), json: (body) => (this.response.body = body) };
		this.getResponseObject = () => response;
		return this;
	}
}
