/** The document that the gateway serves. */
export const DOCUMENT = new URL("../../../gateway/src/pages/site/openapi.json", import.meta.url);

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
