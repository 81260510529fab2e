// Renders the schemas and examples of an OpenAPI document.

import { element } from "/assets/dom.js";

const DEPTH = 4;

/** Text with `code` and **strong** parts. */
export function inline(text) {
  return (text ?? "").split(/(`[^`]+`|\*\*[^*]+\*\*)/).map((part) => {
    if (part.startsWith("`")) return element("code", {}, part.slice(1, -1));
    if (part.startsWith("**")) return element("strong", {}, part.slice(2, -2));
    return part;
  });
}

/** The target of a `$ref`. */
export function resolve(document, thing) {
  for (let hops = 0; thing?.$ref && hops < 10; hops += 1) {
    thing = thing.$ref.slice(2).split("/").reduce((part, name) => part?.[name], document);
  }
  return thing ?? {};
}

/** A schema's type in words. */
export function typeOf(document, schema) {
  const resolved = resolve(document, schema);
  const options = resolved.oneOf ?? resolved.anyOf;
  if (options) return options.map((option) => typeOf(document, option)).join(" or ");
  if (resolved.enum) return resolved.enum.map((value) => JSON.stringify(value)).join(" or ");
  const types = [resolved.type ?? (resolved.allOf || resolved.properties ? "object" : "any")].flat();
  return types.map((type) => (type === "array" ? `array of ${typeOf(document, resolved.items)}` : type)).join(" or ")
    + (resolved.format ? ` (${resolved.format})` : "");
}

/** Every property of a schema, nested ones too, with its path and whether it is required. */
function properties(document, schema, prefix = "", depth = 0) {
  const resolved = resolve(document, schema);
  const parts = resolved.allOf ?? (resolved.oneOf ?? resolved.anyOf ?? []).filter((part) => part.type !== "null");
  const nested = parts.flatMap((part) => properties(document, part, prefix, depth));
  if (depth > DEPTH) return nested;
  if (resolved.items) return properties(document, resolved.items, `${prefix}[].`.replace("..", "."), depth + 1);
  return Object.entries(resolved.properties ?? {}).flatMap(([name, property]) => [
    { name: prefix + name, required: (resolved.required ?? []).includes(name), property },
    ...properties(document, property, `${prefix}${name}.`.replace(".[]", "[]"), depth + 1),
  ]).concat(nested);
}

/** A table of a schema's properties, or a line for a schema without properties. */
export function schemaTable(document, schema) {
  const rows = properties(document, schema);
  if (rows.length === 0) {
    return element("p", { class: "soft small" }, typeOf(document, schema), inline(textOf(resolve(document, schema))));
  }
  return table(["Field", "Type", "Description"], rows.map(({ name, required, property }) => [
    element("span", {}, element("code", {}, name), required ? " *" : ""),
    typeOf(document, property),
    inline(describe(property, resolve(document, property))),
  ]));
}

function textOf(schema) {
  return schema.description ? `: ${schema.description}` : "";
}

/** Description, bounds and default of a property or parameter. */
export function describe(own, schema) {
  const facts = [
    ["minLength", "at least", "characters"], ["maxLength", "at most", "characters"],
    ["minimum", "at least", ""], ["maximum", "at most", ""], ["maxItems", "at most", "entries"],
  ].filter(([key]) => schema[key] !== undefined).map(([key, before, after]) => `${before} ${schema[key]} ${after}`.trim());
  if (schema.default !== undefined) facts.push(`default ${JSON.stringify(schema.default)}`);
  const text = own.description ?? schema.description ?? "";
  return facts.length > 0 ? `${text} (${facts.join(", ")})`.trim() : text;
}

/** An example value of a schema. */
export function example(document, schema, depth = 0) {
  const resolved = resolve(document, schema);
  if (resolved.example !== undefined) return resolved.example;
  if (resolved.examples?.length > 0) return resolved.examples[0];
  if (resolved.default !== undefined) return resolved.default;
  if (resolved.enum) return resolved.enum[0];
  if (depth > DEPTH) return null;
  const options = resolved.oneOf ?? resolved.anyOf;
  if (options) return example(document, options.find((option) => option.type !== "null") ?? options[0], depth + 1);
  if (resolved.allOf) return Object.assign({}, ...resolved.allOf.map((part) => example(document, part, depth + 1)));
  switch ([resolved.type ?? "object"].flat()[0]) {
    case "string": return resolved.format === "date-time" ? "2026-01-31T12:00:00.000Z" : "text";
    case "integer": case "number": return resolved.minimum ?? 1;
    case "boolean": return true;
    case "null": return null;
    case "array": return [example(document, resolved.items, depth + 1)];
    default: return Object.fromEntries(Object.entries(resolved.properties ?? {})
      .map(([name, property]) => [name, example(document, property, depth + 1)]));
  }
}

/** The example of a body: the document's own, or one generated from the schema. */
export function exampleOf(document, media) {
  if (media.example !== undefined) return media.example;
  const named = Object.values(media.examples ?? {}).map((one) => resolve(document, one).value);
  return named[0] ?? example(document, media.schema ?? {});
}

/** A table that scrolls on a narrow screen. */
export function table(heads, rows) {
  const cells = (kind, values) => element("tr", {}, values.map((value) => element(kind, {}, value)));
  return element("div", { class: "scroll" }, element("table", {},
    element("thead", {}, cells("th", heads)),
    element("tbody", {}, rows.map((row) => cells("td", row)))));
}
