import { webcrypto as crypto } from "node:crypto";

/** Node's WebCrypto. Node 18 has no global one. */
export const webcrypto: Crypto = crypto as unknown as Crypto;
