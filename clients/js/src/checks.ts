import type { CallOptions } from "./types.js";

/** Checks an identifier, so that it cannot lead to another path. */
export function checkId(id: string): string {
  if (typeof id !== "string" || !/^[\w-]{1,64}$/.test(id)) throw new TypeError("The identifier is invalid.");
  return id;
}

/** Checks an idempotency key, which becomes a header. */
export function checkIdempotencyKey(key: string): string {
  if (typeof key !== "string" || !/^[\x20-\x7e]{1,255}$/.test(key)) {
    throw new TypeError("`idempotencyKey` must have 1 to 255 printable characters of ASCII.");
  }
  return key;
}

/** An object with this member, or without if it is undefined. */
export function pick<T extends object, K extends keyof T>(from: T, name: K): { [P in K]?: Exclude<T[P], undefined> } {
  const value = from[name];
  return (value === undefined ? {} : { [name]: value }) as { [P in K]?: Exclude<T[P], undefined> };
}

/** Only what limits a call. */
export function limits(options: CallOptions): CallOptions {
  return { ...pick(options, "signal"), ...pick(options, "timeout"), ...pick(options, "retryFor") };
}
