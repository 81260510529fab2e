/**
 * What of the server's OpenAPI document is kept: all but examples, and the paths that repeat others for Appmixer. Names are in a
 * fixed order, so that a change of the document shows as that change only.
 */
export function keptOf(document) {
  const paths = Object.entries(document.paths).filter(([path]) => !path.startsWith("/plugins/"));
  return kept({ ...document, paths: Object.fromEntries(paths) }, false);
}

/** `isMap` says that the names are those of fields, and not of OpenAPI. */
function kept(value, isMap) {
  if (Array.isArray(value)) return value.map((part) => kept(part, false));
  if (typeof value !== "object" || value === null) return value;
  const names = Object.keys(value).filter((name) => isMap || !["example", "examples"].includes(name));
  return Object.fromEntries(names.sort().map((name) => [name, kept(value[name], !isMap && ["properties", "schemas", "responses", "paths"].includes(name))]));
}

/** Fetches the document of a server. */
export async function fetchDocument(server) {
  const response = await fetch(new URL("/openapi.json", server), { signal: AbortSignal.timeout(30_000) });
  if (!response.ok) throw new Error(`The server answered ${response.status}.`);
  return keptOf(await response.json());
}
