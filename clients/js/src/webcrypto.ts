/** The platform's WebCrypto: browsers, Deno, workers. */
export const webcrypto: Crypto = globalThis.crypto;
