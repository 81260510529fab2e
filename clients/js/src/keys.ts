import { webcrypto } from "#webcrypto";

import { CountersignError, UnexpectedAnswerError } from "./errors.js";
import { now } from "./time.js";
import type { Transport } from "./transport.js";
import { decode } from "./signatures.js";

/** After how many seconds the keys are fetched again, so that a withdrawn one ends. */
const LIFETIME = 3600;
/** For how many seconds keys are used if no newer ones can be fetched. */
const USABLE = 24 * 3600;
/** A call that does not verify makes them be fetched at most so often, in seconds. */
const SHORTEST_AGE = 60;
/** There are two while the operator replaces the key. */
const MOST_KEYS = 8;

interface Jwk {
  kty?: unknown;
  crv?: unknown;
  x?: unknown;
}

/** The server's public keys for webhook calls, fetched when they are needed. */
export class WebhookKeys {
  readonly #transport: Transport;
  #keys: CryptoKey[] = [];
  #fetched = -Infinity;
  #tried = -Infinity;
  /** Why the last fetch failed. */
  #failure: unknown;
  #fetching: Promise<void> | undefined;

  constructor(transport: Transport) {
    this.#transport = transport;
  }

  /** Whether one of the signatures is by a published key. Throws if that cannot be said because no keys could be fetched. */
  async check(signed: Uint8Array<ArrayBuffer>, signatures: Uint8Array<ArrayBuffer>[]): Promise<boolean> {
    const mayTry = () => now() - this.#tried >= SHORTEST_AGE;
    const age = now() - this.#fetched;
    if (age > USABLE) await this.#refresh();
    else if (age > LIFETIME && mayTry()) await this.#refresh().catch(() => {});
    if (await this.#isSigned(signed, signatures)) return true;
    if (signatures.length === 0) return false;
    if (mayTry()) await this.#refresh();
    else if (this.#failure) throw this.#failure;
    else return false;
    return this.#isSigned(signed, signatures);
  }

  async #isSigned(signed: Uint8Array<ArrayBuffer>, signatures: Uint8Array<ArrayBuffer>[]): Promise<boolean> {
    for (const key of this.#keys) {
      for (const signature of signatures) {
        if (await webcrypto.subtle.verify("Ed25519", key, signature, signed)) return true;
      }
    }
    return false;
  }

  /** Fetches the keys, once for all that need them. Keys that are there stay if it fails. */
  #refresh(): Promise<void> {
    this.#fetching ??= this.#fetch().finally(() => (this.#fetching = undefined));
    return this.#fetching;
  }

  async #fetch(): Promise<void> {
    try {
      const path = "/.well-known/webhook-keys.json";
      // Countersign waits ten seconds for the answer to its call.
      const { body } = await this.#transport.send<{ keys?: Jwk[] }>({ method: "GET", path, timeout: 4, retryFor: 4 });
      if (!Array.isArray(body.keys)) throw new UnexpectedAnswerError("The answer has no keys.", 200);
      const usable = body.keys.filter(isEd25519).slice(0, MOST_KEYS);
      this.#keys = await Promise.all(usable.map(importKey));
      [this.#fetched, this.#failure] = [now(), undefined];
    } catch (error) {
      this.#failure = error;
      throw error;
    } finally {
      this.#tried = now();
    }
  }
}

function isEd25519(key: Jwk): key is { x: string } {
  const isKey = key?.kty === "OKP" && key.crv === "Ed25519" && typeof key.x === "string";
  return isKey && decode((key.x as string).replaceAll("-", "+").replaceAll("_", "/"))?.length === 32;
}

async function importKey(key: { x: string }): Promise<CryptoKey> {
  try {
    return await webcrypto.subtle.importKey("jwk", { kty: "OKP", crv: "Ed25519", x: key.x }, "Ed25519", false, ["verify"]);
  } catch (cause) {
    throw new CountersignError("ed25519-unsupported", "This platform's WebCrypto has no Ed25519. Register webhooks with a `secret`.", { cause });
  }
}
