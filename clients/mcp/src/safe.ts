/** What replaces a secret. */
const HIDDEN = "[hidden]";

/** Keys, webhook secrets and tokens, and the secrets of links such as `/tasks?id=…&secret=…`. */
const SECRETS: [RegExp, string][] = [
  [/\b(csk|whsec)_[0-9A-Za-z+/=_-]+/g, HIDDEN],
  [/\beyJ[\w-]+\.[\w-]+\.[\w-]+/g, HIDDEN],
  [/\b((?:approver|requester)?secret["']?\s*(?:=|:|%3d)\s*["']?)[^\s&"'<>)]+/gi, `$1${HIDDEN}`],
];

/** Returns the value with everything that looks like a secret hidden, in texts at any depth. */
export function safe<T>(value: T): T {
  return clean(value) as T;
}

function clean(value: unknown): unknown {
  if (typeof value === "string") return SECRETS.reduce((text, [secret, by]) => text.replace(secret, by), value);
  if (Array.isArray(value)) return value.map(clean);
  if (value !== null && typeof value === "object") {
    return Object.fromEntries(Object.entries(value).map(([name, entry]) => [name, clean(entry)]));
  }
  return value;
}
