"use strict";

/** Evaluates a field of the editor for a message. An empty one is undefined. */
function evaluate(RED, node, config, name, message) {
  const [value, type] = [config[name], config[`${name}Type`] ?? "str"];
  if (type === "str") return Promise.resolve(value?.trim() === "" ? undefined : value);
  return new Promise((resolve, reject) => {
    RED.util.evaluateNodeProperty(value, type, node, message, (error, result) => {
      if (error) reject(new Error(`The field "${name}" cannot be evaluated: ${error.message ?? error}`));
      else resolve(result === "" || result === null ? undefined : result);
    });
  });
}

/** The due date of a field: seconds from `now`, a date, or a text that the server understands. */
function dueDate(value, now) {
  if (value === undefined) return undefined;
  const isNumber = typeof value === "number" || /^\s*\d+(\.\d+)?\s*$/.test(value);
  if (!isNumber) return value instanceof Date ? value.toISOString() : String(value);
  if (!(Number(value) > 0 && Number(value) <= 1e9)) throw new Error('The field "due" must be a number of seconds from now, or a date.');
  return new Date(now.getTime() + Number(value) * 1000).toISOString();
}

/** Something as text: numbers and objects, too. */
function text(value) {
  if (value === undefined || typeof value === "string") return value;
  return typeof value === "object" ? JSON.stringify(value) : String(value);
}

module.exports = { dueDate, evaluate, text };
