// Makes src/openapi.ts from the OpenAPI document that the gateway serves.
//
//   node scripts/generate.js                   makes the types
//   node scripts/generate.js --check           changes nothing, and fails if they are out of date
//   node scripts/generate.js --document FILE   makes them from another document
import { readFileSync, writeFileSync } from "node:fs";
import { parseArgs } from "node:util";
import openapiTS, { astToString } from "openapi-typescript";

import { DOCUMENT, keptOf } from "./document.js";

const { values } = parseArgs({ options: { document: { type: "string" }, check: { type: "boolean", default: false } } });
const typesFile = new URL("../src/openapi.ts", import.meta.url);
const HEADER = "// Made by `npm run generate` from the server's openapi.json. Do not edit it.\n\n";

const document = keptOf(JSON.parse(readFileSync(values.document ?? DOCUMENT, "utf8")));
const types = HEADER + astToString(await openapiTS(document, { alphabetize: true, defaultNonNullable: false, exportType: true }));
if (!values.check) {
  writeFileSync(typesFile, types);
} else if (readFileSync(typesFile, "utf8") !== types) {
  console.error("src/openapi.ts is out of date: run `npm run generate`.");
  process.exitCode = 1;
}
