/** Parts of workflows for tests. */

let number = 0;

export function node(name, type, parameters, more = {}) {
	number += 1;
	const id = `00000000-0000-4000-8000-${String(number).padStart(12, '0')}`;
	return { id, name, type, typeVersion: 1, position: [number * 200, 0], parameters, ...more };
}

/** Starts a workflow by a call. */
export function start(path) {
	const parameters = { httpMethod: 'POST', path, responseMode: 'onReceived', options: {} };
	const webhookId = `00000000-0000-4000-9000-${String((number += 1)).padStart(12, '0')}`;
	return node('Start', 'n8n-nodes-base.webhook', parameters, { typeVersion: 2, webhookId });
}

/** Sends each item to the sink. */
export function report(sink, path, name = 'Report') {
	const parameters = {
		method: 'POST',
		url: `${sink.url}${path}`,
		sendBody: true,
		specifyBody: 'json',
		jsonBody: '={{ JSON.stringify($json) }}',
		options: {},
	};
	return node(name, 'n8n-nodes-base.httpRequest', parameters, { typeVersion: 4.2 });
}

export function countersign(name, credential, parameters) {
	const credentials = { countersignApi: { id: credential.id, name: credential.name } };
	const webhookId = `00000000-0000-4000-a000-${String((number += 1)).padStart(12, '0')}`;
	return node(name, 'n8n-nodes-countersign.countersign', parameters, { credentials, webhookId });
}

/** A workflow whose nodes follow each other. */
export function chain(name, ...nodes) {
	const pairs = nodes.slice(1).map((to, index) => [nodes[index].name, to.name]);
	return { name, nodes, connections: Object.fromEntries(pairs.map(([from, to]) => [from, link(to)])) };
}

/** A connection of the only output to one node. */
export function link(to) {
	return { main: [[{ node: to, type: 'main', index: 0 }]] };
}
