// Makes src/openapi.ts from openapi.json, the document of the server.
//
//   node scripts/generate.js --server http://localhost:8080   fetches the document first
//   node scripts/generate.js                                  only makes the types
//   node scripts/generate.js --check [--server …]             changes nothing, and fails if something is out of date
import { readFileSync, writeFileSync } from "node:fs";
import { parseArgs } from "node:util";
import openapiTS, { astToString } from "openapi-typescript";

import { fetchDocument } from "./document.js";

const { values } = parseArgs({ options: { server: { type: "string" }, check: { type: "boolean", default: false } } });
const documentFile = new URL("../openapi.json", import.meta.url);
const typesFile = new URL("../src/openapi.ts", import.meta.url);
const HEADER = "// Made by `npm run generate` from openapi.json. Do not edit it.\n\n";

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

const document = values.server ? `${JSON.stringify(await fetchDocument(values.server), null, 1)}\n` : readFileSync(documentFile, "utf8");
settle(documentFile, document);
const types = await openapiTS(JSON.parse(document), { alphabetize: true, defaultNonNullable: false, exportType: true });
settle(typesFile, HEADER + astToString(types));
