import { webcrypto } from "#webcrypto";

import { decode, randomBytes, verifyCall } from "./signatures.js";
import type { VerifiedCall, WebhookTask } from "./types.js";

/** Headers of a request, in the forms that servers have them. Names may be in upper or lower case. */
export type HeadersLike = Headers | Iterable<readonly [string, string]> | Readonly<Record<string, string | readonly string[] | undefined>>;

/** The body of a request as it arrived. JSON that was parsed and written again does not verify. */
export type RawBody = string | Uint8Array | ArrayBuffer;

export interface VerifyOptions {
  /** The secret that the webhook was registered with (`whsec_…`); several while it is replaced. */
  secret: string | readonly string[];
  /** How many seconds the call's time may be off; 300 by default. */
  tolerance?: number;
}

/**
 * Checks the HMAC signature (`v1`) of a webhook call, and returns what it says.
 *
 * Throws a `VerificationError` if the call is not genuine.
 */
export async function verify<T = WebhookTask>(headers: HeadersLike, body: RawBody, options: VerifyOptions): Promise<VerifiedCall<T>> {
  const secrets = typeof options.secret === "string" ? [options.secret] : options.secret;
  if (!Array.isArray(secrets) || secrets.length === 0) throw new TypeError("`secret` must be a text that begins with `whsec_`.");
  const keys = await Promise.all(secrets.map(importSecret));
  return verifyCall<T>(headers, body, "v1", options.tolerance, async (signed, signatures) => {
    let isValid = false;
    for (const key of keys) {
      for (const signature of signatures) {
        if (await webcrypto.subtle.verify("HMAC", key, signature, signed)) isValid = true;
      }
    }
    return isValid;
  });
}

/** Says nothing about the secret itself. */
async function importSecret(secret: string): Promise<CryptoKey> {
  const bytes = typeof secret === "string" && secret.startsWith("whsec_") ? decode(secret.slice(6)) : undefined;
  if (!bytes || bytes.length < 24 || bytes.length > 64) {
    throw new TypeError("`secret` must be `whsec_` and 24 to 64 bytes in base64.");
  }
  return webcrypto.subtle.importKey("raw", bytes, { name: "HMAC", hash: "SHA-256" }, false, ["verify"]);
}

/** A new secret for a webhook: `whsec_` and 32 random bytes in base64. */
export function newWebhookSecret(): string {
  return `whsec_${btoa(String.fromCharCode(...randomBytes(32)))}`;
}
