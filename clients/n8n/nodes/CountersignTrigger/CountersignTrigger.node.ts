import type {
	INodeExecutionData,
	INodeType,
	INodeTypeDescription,
	IPollFunctions,
} from 'n8n-workflow';
import { NodeConnectionTypes } from 'n8n-workflow';

import { poll } from './poll';

export class CountersignTrigger implements INodeType {
	description: INodeTypeDescription = {
		displayName: 'Countersign Trigger',
		name: 'countersignTrigger',
		icon: {
			light: 'file:../../icons/countersign.svg',
			dark: 'file:../../icons/countersign.dark.svg',
		},
		group: ['trigger'],
		version: 1,
		subtitle: '={{ $parameter["events"].join(", ") }}',
		description: 'Starts the workflow when requests for approval are created, decided or withdrawn',
		defaults: { name: 'Countersign Trigger' },
		polling: true,
		inputs: [],
		outputs: [NodeConnectionTypes.Main],
		credentials: [{ name: 'countersignApi', required: true }],
		properties: [
			{
				displayName: 'Events',
				name: 'events',
				type: 'multiOptions',
				required: true,
				options: [
					{ name: 'Approved', value: 'approved' },
					{ name: 'Cancelled', value: 'cancelled' },
					{ name: 'Created', value: 'created' },
					{ name: 'Rejected', value: 'rejected' },
				],
				default: ['approved', 'rejected'],
				description: 'What starts the workflow',
			},
			{
				displayName: 'Requests',
				name: 'role',
				type: 'options',
				options: [
					{ name: 'All That the User of the Key Has to Do With', value: '' },
					{ name: 'Created by the User of the Key', value: 'creator' },
					{ name: 'Requested by the User of the Key', value: 'requester' },
					{ name: 'To Be Approved by the User of the Key', value: 'approver' },
				],
				default: 'creator',
				description: 'Which requests are looked at',
			},
		],
	};

	async poll(this: IPollFunctions): Promise<INodeExecutionData[][] | null> {
		return await poll(this);
	}
}
