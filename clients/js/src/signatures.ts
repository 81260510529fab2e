import { webcrypto } from "#webcrypto";

import { VerificationError } from "./errors.js";
import type { VerifiedCall } from "./types.js";
import type { HeadersLike, RawBody } from "./verify.js";

/** Checks a signature of one kind. */
export type SignatureCheck = (signed: Uint8Array<ArrayBuffer>, signatures: Uint8Array<ArrayBuffer>[]) => Promise<boolean>;

/** How many seconds a call may be off. */
const TOLERANCE = 300;
/** More than two keys and a secret need. */
const MOST_SIGNATURES = 16;

/** Checks a call's time and its signatures of this version, and returns what it says. */
export async function verifyCall<T>(
  headers: HeadersLike,
  body: RawBody,
  version: "v1" | "v1a",
  tolerance = TOLERANCE,
  check: SignatureCheck,
): Promise<VerifiedCall<T>> {
  const bytes = bytesOf(body);
  const id = header(headers, "webhook-id");
  const time = header(headers, "webhook-timestamp");
  const signature = header(headers, "webhook-signature");
  if (!id || !time || !signature) {
    throw new VerificationError("missing-header", "The call has no `webhook-id`, `webhook-timestamp` or `webhook-signature`.");
  }
  if (!/^\d{1,12}$/.test(time)) throw new VerificationError("invalid-timestamp", "`webhook-timestamp` is invalid.");
  if (!(Math.abs(Date.now() / 1000 - Number(time)) <= tolerance)) {
    throw new VerificationError("timestamp-out-of-range", "The call is too old or too new.");
  }
  const signed = concat(new TextEncoder().encode(`${id}.${time}.`), bytes);
  if (!(await check(signed, signaturesOf(signature, version)))) {
    throw new VerificationError("no-valid-signature", `The call has no valid signature (${version}).`);
  }
  return {
    id,
    timestamp: new Date(Number(time) * 1000),
    isTest: header(headers, "webhook-test") === "true",
    body: parseBody<T>(bytes),
  };
}

function parseBody<T>(bytes: Uint8Array): T {
  try {
    return JSON.parse(new TextDecoder("utf-8", { fatal: true }).decode(bytes)) as T;
  } catch {
    throw new VerificationError("invalid-body", "The body is not JSON.");
  }
}

/** The value of a header; nothing if it is there twice. */
function header(headers: HeadersLike, name: string): string | undefined {
  if (typeof Headers !== "undefined" && headers instanceof Headers) return headers.get(name) ?? undefined;
  const isIterable = Symbol.iterator in headers;
  const entries = isIterable ? [...(headers as Iterable<readonly [string, string]>)] : Object.entries(headers);
  const values = entries.filter(([key]) => key.toLowerCase() === name).flatMap(([, value]) => value ?? []);
  return values.length === 1 ? values[0] : undefined;
}

function bytesOf(body: RawBody): Uint8Array {
  if (typeof body === "string") return new TextEncoder().encode(body);
  if (body instanceof Uint8Array) return body;
  if (body instanceof ArrayBuffer) return new Uint8Array(body);
  throw new TypeError("`body` must be the raw body: a text or bytes, not JSON that was parsed.");
}

function concat(first: Uint8Array, second: Uint8Array): Uint8Array<ArrayBuffer> {
  const both = new Uint8Array(first.length + second.length);
  both.set(first);
  both.set(second, first.length);
  return both;
}

function signaturesOf(text: string, version: string): Uint8Array<ArrayBuffer>[] {
  const found = text.split(" ").filter((part) => part.startsWith(`${version},`));
  const decoded = found.slice(0, MOST_SIGNATURES).map((part) => decode(part.slice(version.length + 1)));
  return decoded.filter((bytes) => bytes !== undefined);
}

/** Base64 to bytes; nothing if it is invalid. */
export function decode(text: string): Uint8Array<ArrayBuffer> | undefined {
  try {
    return Uint8Array.from(atob(text), (character) => character.charCodeAt(0));
  } catch {
    return undefined;
  }
}

/** A new idempotency key. */
export function randomKey(): string {
  return Array.from(randomBytes(16), (byte) => byte.toString(16).padStart(2, "0")).join("");
}

/** Random bytes for secrets and keys. */
export function randomBytes(length: number): Uint8Array {
  return webcrypto.getRandomValues(new Uint8Array(length));
}
