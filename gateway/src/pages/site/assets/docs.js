// Renders openapi.json as a page.

import { call } from "/assets/api.js";
import { $, element, notify } from "/assets/dom.js";
import { describe, exampleOf, inline, resolve, schemaTable, table, typeOf } from "/assets/schema.js";

const METHODS = ["get", "post", "put", "delete", "patch"];

/** Paragraphs, separated by empty lines. */
function prose(text) {
  return (text ?? "").split(/\n\s*\n/).filter(Boolean).map((paragraph) => element("p", {}, inline(paragraph)));
}

function operations(document) {
  return Object.entries(document.paths).flatMap(([path, item]) => METHODS
    .filter((method) => item[method])
    .map((method) => ({ path, method: method.toUpperCase(), ...item[method] })));
}

const anchor = ({ method, path }) => `${method}${path.replaceAll(/[^a-zA-Z0-9]+/g, "-")}`.toLowerCase();

function verb(method) {
  return element("span", { class: `verb ${method}` }, method);
}

function parameters(document, operation) {
  const resolved = (operation.parameters ?? []).map((parameter) => resolve(document, parameter));
  if (resolved.length === 0) return [];
  return [element("h3", {}, "Parameters"), table(["Name", "In", "Type", "Description"], resolved.map((parameter) => [
    element("span", {}, element("code", {}, parameter.name), parameter.required ? " *" : ""),
    parameter.in, typeOf(document, parameter.schema), inline(describe(parameter, resolve(document, parameter.schema))),
  ]))];
}

function media(document, content) {
  const [type, body] = Object.entries(content ?? {})[0] ?? [];
  if (!body) return [];
  const shown = exampleOf(document, body);
  return [element("p", { class: "soft small" }, type), schemaTable(document, body.schema ?? {}),
    element("pre", {}, element("code", {}, JSON.stringify(shown, null, 2)))];
}

function request(document, operation) {
  const body = resolve(document, operation.requestBody);
  return body.content ? [element("h3", {}, "Body"), ...prose(body.description), ...media(document, body.content)] : [];
}

function responses(document, operation) {
  const rows = Object.entries(operation.responses ?? {}).sort().map(([status, given]) => {
    const response = resolve(document, given);
    return element("details", { class: "response" },
      element("summary", {}, element("span", { class: "code" }, status), inline(response.description)),
      ...media(document, response.content));
  });
  return [element("h3", {}, "Responses"), ...rows];
}

/** The operation as a shell command. */
function curl(document, operation) {
  const lines = [`curl -X ${operation.method} '${location.origin}${operation.path}'`];
  const security = operation.security ?? document.security ?? [];
  if (security.some((needed) => Object.keys(needed).length > 0)) lines.push("-H \"Authorization: Bearer $TOKEN\"");
  const body = resolve(document, operation.requestBody).content?.["application/json"];
  if (body) {
    lines.push("-H 'Content-Type: application/json'");
    lines.push(`-d '${JSON.stringify(exampleOf(document, body)).replaceAll("'", "'\\''")}'`);
  }
  return element("pre", {}, element("code", {}, lines.join(" \\\n  ")));
}

function access(operation) {
  const names = { bearer: "an access token", taskSecret: "the task's secret in a header", taskSecretInQuery: "the task's secret in the query" };
  const options = (operation.security ?? []).map((option) => Object.keys(option).map((name) => names[name] ?? name).join(" and "));
  const required = [...new Set(options)].filter(Boolean);
  if (required.length === 0) return "No authentication required.";
  const all = required.join(" or ");
  return options.includes("") ? `Authentication: ${all}. Optional for some requests.` : `Requires ${all}.`;
}

function operationCard(document, operation) {
  const details = element("details", { class: "card operation", id: anchor(operation) },
    element("summary", {}, verb(operation.method), element("span", { class: "path" }, operation.path),
      element("span", { class: "soft" }, inline(operation.summary))));
  // The details of an operation are rendered when it is opened, so that the page loads quickly.
  details.addEventListener("toggle", () => {
    details.append(...prose(operation.description), element("p", { class: "soft small" }, access(operation)),
      ...parameters(document, operation), ...request(document, operation), ...responses(document, operation),
      element("h3", {}, "Try it"), curl(document, operation));
  }, { once: true });
  return details;
}

function groups(document) {
  const byTag = new Map((document.tags ?? []).map((tag) => [tag.name, { ...tag, operations: [] }]));
  for (const operation of operations(document)) {
    const tag = operation.tags?.[0] ?? "other";
    if (!byTag.has(tag)) byTag.set(tag, { name: tag, operations: [] });
    byTag.get(tag).operations.push(operation);
  }
  return [...byTag.values()].filter((group) => group.operations.length > 0);
}

function openTarget() {
  const target = $(decodeURIComponent(location.hash.slice(1)));
  if (target) {
    target.open = true;
    target.scrollIntoView();
  }
}

function render(document) {
  const page = [element("h1", {}, `${document.info.title} API`),
    element("p", { class: "soft small" }, `Version ${document.info.version}. For tools: `,
      element("a", { href: "/openapi.json" }, "openapi.json"), "."), ...prose(document.info.description)];
  const index = [];
  for (const group of groups(document)) {
    page.push(element("h2", {}, group.name), ...prose(group.description),
      ...group.operations.map((operation) => operationCard(document, operation)));
    index.push(element("details", { open: matchMedia("(min-width: 60rem)").matches },
      element("summary", {}, group.name), element("ul", {}, group.operations.map((operation) =>
        element("li", {}, element("a", { href: `#${anchor(operation)}` }, verb(operation.method), operation.path.replace("/plugins/appmixer/utils/", "…/")))))));
  }
  $("document").replaceChildren(...page);
  $("index").replaceChildren(...index);
  addEventListener("hashchange", openTarget);
  openTarget();
}

// The document is in English, whatever the language of the other pages.
document.documentElement.lang = "en";
call("GET", "/openapi.json").then(render, (error) => notify(error.message, "bad"));
