import type {
	IDataObject,
	IExecuteFunctions,
	IHttpRequestMethods,
	IPollFunctions,
	IWebhookFunctions,
} from 'n8n-workflow';
import { NodeApiError, sleep } from 'n8n-workflow';

export type Context = IExecuteFunctions | IWebhookFunctions | IPollFunctions;

/** How long a response may take, in milliseconds. */
const RESPONSE_TIME = 15_000;
/** For how long a request is repeated, in milliseconds: longer than Countersign takes to restart. */
const REPEAT_TIME = 180_000;
const FIRST_PAUSE = 500;
const LONGEST_PAUSE = 10_000;

interface Call {
	body?: IDataObject;
	query?: IDataObject;
	/** Makes a repeated creation the same one. */
	idempotencyKey?: string;
	/** For how long to repeat the request, in milliseconds. */
	repeatTime?: number;
	/** The codes of problems that are no errors. */
	allow?: string[];
	/** The item that the request is about. */
	itemIndex?: number;
}

interface Outcome {
	status: number;
	headers: IDataObject;
	body: unknown;
	/** The code of the problem; empty after a success. */
	code: string;
	/** The detail of the problem. */
	message: string;
}

/**
 * Calls Countersign, again and again while the failure may pass, and returns the JSON of the response. A failure is a
 * `NodeApiError` whose description is the code of the problem, or `unreachable`. It never holds the key.
 */
export async function call(
	context: Context,
	method: IHttpRequestMethods,
	path: string,
	options: Call = {},
): Promise<unknown> {
	const end = Date.now() + (options.repeatTime ?? REPEAT_TIME);
	for (let pause = FIRST_PAUSE; ; pause = Math.min(2 * pause, LONGEST_PAUSE)) {
		const outcome = await callOnce(context, method, path, options);
		if (outcome.code === '' || options.allow?.includes(outcome.code)) return outcome.body;
		const wait = Math.max(pause, (Number(outcome.headers['retry-after']) || 0) * 1000);
		const mayPass = isPassing(outcome.status) || outcome.code === 'idempotency-key-in-use';
		if (!mayPass || Date.now() + wait > end) {
			throw new NodeApiError(
				context.getNode(),
				{ message: outcome.message, code: outcome.code },
				{
					message: outcome.message,
					description: outcome.code,
					httpCode: outcome.status === 0 ? undefined : String(outcome.status),
					itemIndex: options.itemIndex,
				},
			);
		}
		await sleep(wait);
	}
}

/** Whether the same request may succeed after this status. 0 stands for no response. */
function isPassing(status: number): boolean {
	return [0, 408, 429].includes(status) || (status >= 500 && status !== 501 && status !== 505);
}

async function callOnce(
	context: Context,
	method: IHttpRequestMethods,
	path: string,
	{ body, query, idempotencyKey }: Call,
): Promise<Outcome> {
	const { url } = await context.getCredentials<{ url: string }>('countersignApi');
	const headers: IDataObject = {
		Accept: 'application/json',
		'User-Agent': 'n8n-nodes-countersign',
	};
	if (idempotencyKey !== undefined) headers['Idempotency-Key'] = idempotencyKey;
	const request = {
		method,
		baseURL: url.replace(/\/+$/, ''),
		url: path,
		qs: query,
		headers,
		body,
		json: true,
		timeout: RESPONSE_TIME,
		disableFollowRedirect: true,
		ignoreHttpStatusErrors: true,
		returnFullResponse: true,
	};
	try {
		const send = context.helpers.httpRequestWithAuthentication;
		const response = (await send.call(context, 'countersignApi', request)) as {
			statusCode: number;
			headers: IDataObject;
			body: unknown;
		};
		return read(response.statusCode, response.headers, response.body);
	} catch {
		// The error of the HTTP client holds the key.
		const message = 'Countersign cannot be reached';
		return { status: 0, headers: {}, body: undefined, code: 'unreachable', message };
	}
}

function read(status: number, headers: IDataObject, body: unknown): Outcome {
	const isJson = typeof body === 'object' && body !== null;
	const isSuccess = status >= 200 && status < 300;
	if (isSuccess && isJson) return { status, headers, body, code: '', message: '' };
	const problem = isJson ? (body as IDataObject) : {};
	const code = typeof problem.code === 'string' ? problem.code : 'unexpected-response';
	const detail =
		typeof problem.detail === 'string'
			? problem.detail
			: `The response (${status}) is not one of Countersign`;
	// A page in place of JSON is that of a proxy, or of a program that starts.
	return {
		status: isSuccess ? 502 : status,
		headers,
		body,
		code,
		message: detail + fieldsOf(problem),
	};
}

/** Names the invalid fields of a `validation-failed` problem. */
function fieldsOf(problem: IDataObject): string {
	if (!Array.isArray(problem.errors)) return '';
	const errors = problem.errors as IDataObject[];
	return errors.map(({ field, message }) => ` ${String(field)}: ${String(message)}`).join('');
}
