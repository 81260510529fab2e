import type {
	IAuthenticateGeneric,
	Icon,
	ICredentialTestRequest,
	ICredentialType,
	INodeProperties,
} from 'n8n-workflow';

export class CountersignApi implements ICredentialType {
	name = 'countersignApi';

	displayName = 'Countersign API';

	icon: Icon = {
		light: 'file:../icons/countersign.svg',
		dark: 'file:../icons/countersign.dark.svg',
	};

	documentationUrl = 'https://docs.n8n.io/integrations/community-nodes/usage/';

	properties: INodeProperties[] = [
		{
			displayName: 'URL',
			name: 'url',
			type: 'string',
			required: true,
			default: '',
			placeholder: 'https://countersign.example.com',
			description: 'The address of Countersign',
		},
		{
			displayName: 'API Key',
			name: 'apiKey',
			type: 'string',
			typeOptions: { password: true },
			required: true,
			default: '',
			placeholder: 'csk_…',
			description: 'A key with the scopes tasks:read and tasks:write, and users:read unless each question names a requester',
		},
	];

	authenticate: IAuthenticateGeneric = {
		type: 'generic',
		properties: { headers: { Authorization: '=Bearer {{$credentials.apiKey}}' } },
	};

	test: ICredentialTestRequest = {
		request: {
			baseURL: '={{$credentials.url.replace(/\\/+$/, "")}}',
			url: '/people-task/tasks-count',
		},
	};
}
