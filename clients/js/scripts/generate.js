// Makes src/openapi.ts from openapi.json, the document of the server.
//
//   node scripts/generate.js --server http://localhost:8080   fetches the document first
//   node scripts/generate.js                                  only makes the types
//   node scripts/generate.js --check [--server …]             changes nothing, and fails if something is out of date
import { readFileSync, writeFileSync } from "node:fs";
import { parseArgs } from "node:util";
import openapiTS, { astToString } from "openapi-typescript";

const { values } = parseArgs({ options: { server: { type: "string" }, check: { type: "boolean", default: false } } });
const documentFile = new URL("../openapi.json", import.meta.url);
const typesFile = new URL("../src/openapi.ts", import.meta.url);
const HEADER = "// Made by `npm run generate` from openapi.json. Do not edit it.\n\n";

/** Names in a fixed order, so that a change of the document shows as that change only. */
function sorted(value) {
  if (Array.isArray(value)) return value.map(sorted);
  if (typeof value !== "object" || value === null) return value;
  return Object.fromEntries(Object.keys(value).sort().map((name) => [name, sorted(value[name])]));
}

async function fetchDocument(server) {
  const response = await fetch(new URL("/openapi.json", server), { signal: AbortSignal.timeout(30_000) });
  if (!response.ok) throw new Error(`The server answered ${response.status}.`);
  return `${JSON.stringify(sorted(await response.json()), null, 1)}\n`;
}

function settle(file, text) {
  let old = "";
  try {
    old = readFileSync(file, "utf8");
  } catch (error) {
    if (error.code !== "ENOENT") throw error;
  }
  if (old === text) return;
  if (!values.check) return writeFileSync(file, text);
  console.error(`${file.pathname.split("/").pop()} is out of date: run \`npm run generate\`, with \`-- --server URL\` if the server has changed.`);
  process.exitCode = 1;
}

const document = values.server ? await fetchDocument(values.server) : readFileSync(documentFile, "utf8");
settle(documentFile, document);
const types = await openapiTS(JSON.parse(document), { alphabetize: true, exportType: true });
settle(typesFile, HEADER + astToString(types));
