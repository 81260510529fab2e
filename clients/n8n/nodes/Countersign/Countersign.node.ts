import type {
	IDataObject,
	IExecuteFunctions,
	IHookFunctions,
	INodeExecutionData,
	INodeType,
	INodeTypeDescription,
	IWebhookFunctions,
	IWebhookResponseData,
} from 'n8n-workflow';
import { NodeConnectionTypes } from 'n8n-workflow';

import { cancelTask, getTask, toOutput } from '../shared/tasks';
import { askAndWait } from './ask';
import { properties } from './properties';
import { receive } from './receive';

// An agent's tool cannot wait for days. Agents have @countersign/mcp.
// eslint-disable-next-line @n8n/community-nodes/node-usable-as-tool
export class Countersign implements INodeType {
	description: INodeTypeDescription = {
		displayName: 'Countersign',
		name: 'countersign',
		icon: {
			light: 'file:../../icons/countersign.svg',
			dark: 'file:../../icons/countersign.dark.svg',
		},
		group: ['output'],
		version: 1,
		subtitle:
			'={{ { ask: "Ask for approval and wait", cancel: "Cancel a request", get: "Get a request" }[$parameter["operation"]] }}',
		description: 'Ask a person for approval and wait for the decision',
		defaults: { name: 'Countersign' },
		inputs: [NodeConnectionTypes.Main],
		outputs: [NodeConnectionTypes.Main],
		credentials: [{ name: 'countersignApi', required: true }],
		webhooks: [
			{
				name: 'default',
				httpMethod: 'POST',
				responseMode: 'onReceived',
				// Empty: the answer is that of `webhook`.
				responseData: '',
				path: '={{ $nodeId }}',
				restartWebhook: true,
				isFullPath: true,
			},
		],
		properties,
	};

	async execute(this: IExecuteFunctions): Promise<INodeExecutionData[][]> {
		const operation = this.getNodeParameter('operation', 0);
		if (operation === 'ask') {
			await askAndWait(this);
			return [this.getInputData()];
		}
		const output: INodeExecutionData[] = [];
		for (let item = 0; item < this.getInputData().length; item++) {
			const result = operation === 'cancel' ? cancel(this, item) : get(this, item);
			const json = this.continueOnFail() ? await result.catch(toErrorOutput) : await result;
			output.push({ json, pairedItem: { item } });
		}
		return [output];
	}

	/** Countersign learns the URL with each request, so there is nothing to register. */
	webhookMethods = {
		default: {
			async checkExists(this: IHookFunctions): Promise<boolean> {
				return true;
			},
			async create(this: IHookFunctions): Promise<boolean> {
				return true;
			},
			async delete(this: IHookFunctions): Promise<boolean> {
				return true;
			},
		},
	};

	async webhook(this: IWebhookFunctions): Promise<IWebhookResponseData> {
		return await receive(this);
	}
}

function idOf(context: IExecuteFunctions, item: number): string {
	return String(context.getNodeParameter('id', item)).trim();
}

async function get(context: IExecuteFunctions, itemIndex: number): Promise<IDataObject> {
	return toOutput(await getTask(context, idOf(context, itemIndex), { itemIndex }));
}

/** Withdraws a request. One that has ended stays as it is, and is returned so. */
async function cancel(context: IExecuteFunctions, itemIndex: number): Promise<IDataObject> {
	const reason = String(context.getNodeParameter('reason', itemIndex, ''));
	await cancelTask(context, idOf(context, itemIndex), reason, { itemIndex });
	return await get(context, itemIndex);
}

function toErrorOutput(error: Error & { description?: string }): IDataObject {
	return { error: error.message, code: error.description ?? null };
}
