// What differs between two versions of a task, word by word.

import { element } from "./dom.js";
import { t } from "./texts.js";
import { parseTime, timeToTheSecond, zonedText } from "./times.js";

/** Above this many pairs of parts, a text is compared by lines, or shown as replaced. */
const MAX_PAIRS = 1_000_000;
/** How many words without a change are shown on each side of one. */
const CONTEXT = 8;

const FIELDS = {
  title: ["title", ({ title }) => title],
  description: ["description", ({ description }) => description],
  decisionBy: ["due", ({ decisionBy }) => dueText(parseTime(decisionBy))],
  approver: ["approver", ({ approver }) => approver],
  requester: ["requestedBy", ({ requester }) => requester],
};

const dueText = (date) => (date?.getUTCSeconds() ? timeToTheSecond(date).textContent : zonedText(date));

/** The names of the fields that differ. */
export const changedFields = (before, after) => Object.keys(FIELDS).filter((field) => before[field] !== after[field]);

const wordsOf = (text) => text.match(/\s+|[\p{L}\p{N}\p{M}]+|[^\s\p{L}\p{N}\p{M}]/gu) ?? [];
const linesOf = (text) => text.match(/[^\n]*\n|[^\n]+/g) ?? [];

/** The parts of two lists in order, each with `del`, `ins`, or nothing if both have it: a longest common subsequence. */
function compare(before, after) {
  const width = after.length + 1;
  const lengths = new Uint16Array((before.length + 1) * width);
  for (let a = before.length - 1; a >= 0; a -= 1) {
    for (let b = after.length - 1; b >= 0; b -= 1) {
      lengths[a * width + b] = before[a] === after[b] ? lengths[(a + 1) * width + b + 1] + 1
        : Math.max(lengths[(a + 1) * width + b], lengths[a * width + b + 1]);
    }
  }
  const parts = [];
  let [a, b] = [0, 0];
  while (a < before.length || b < after.length) {
    if (a < before.length && b < after.length && before[a] === after[b]) parts.push(["", before[a++], b++]);
    else if (b >= after.length || (a < before.length && lengths[(a + 1) * width + b] >= lengths[a * width + b + 1])) parts.push(["del", before[a++]]);
    else parts.push(["ins", after[b++]]);
  }
  return parts;
}

/** The same without what both begin and end with, which may be long. */
function compareMiddle(before, after, otherwise) {
  let start = 0;
  while (start < Math.min(before.length, after.length) && before[start] === after[start]) start += 1;
  let end = 0;
  while (end < Math.min(before.length, after.length) - start && before[before.length - 1 - end] === after[after.length - 1 - end]) end += 1;
  const same = (parts) => parts.map((part) => ["", part]);
  const [old, young] = [before, after].map((all) => all.slice(start, all.length - end));
  const middle = old.length * young.length > MAX_PAIRS ? otherwise(old, young) : compare(old, young);
  return [...same(before.slice(0, start)), ...middle, ...same(before.slice(before.length - end))];
}

const replaced = (before, after) => [["del", before.join("")], ["ins", after.join("")]];
const words = (before, after) => compareMiddle(wordsOf(before), wordsOf(after), replaced);

/** Differences of long texts: of their lines, and within lines that changed of their words. */
function byLines(before, after) {
  const parts = [];
  let [del, ins] = ["", ""];
  const flush = () => {
    if (del || ins) parts.push(...words(del, ins));
    [del, ins] = ["", ""];
  };
  for (const [kind, line] of compareMiddle(linesOf(before), linesOf(after), replaced)) {
    if (kind === "del") del += line;
    else if (kind === "ins") ins += line;
    else {
      flush();
      parts.push(["", line]);
    }
  }
  flush();
  return parts;
}

/** Neighbours of the same kind as one part. */
function joined(parts) {
  const all = [];
  for (const [kind, text] of parts) {
    if (all.length > 0 && all[all.length - 1][0] === kind) all[all.length - 1][1] += text;
    else all.push([kind, text]);
  }
  return all;
}

/** A long text without a change as its words beside the changes. */
function shortened(text, isFirst, isLast) {
  const all = wordsOf(text);
  if (all.length <= 4 * CONTEXT) return text;
  const start = isFirst ? "" : all.slice(0, 2 * CONTEXT).join("");
  const end = isLast ? "" : all.slice(-2 * CONTEXT).join("");
  return `${start} … ${end}`;
}

function differences(before, after) {
  const parts = joined(byLines(before, after));
  return parts.map(([kind, text], at) => (kind ? element(kind, {}, text) : shortened(text, at === 0, at === parts.length - 1)));
}

/** What changed from one version of a task to another: each field with its words. */
export function changeList(before, after) {
  const rows = changedFields(before, after).map((field) => {
    const [name, textOf] = FIELDS[field];
    return [element("dt", {}, t(name)), element("dd", { dir: "auto" }, differences(textOf(before), textOf(after)))];
  });
  return element("dl", { class: "changes" }, rows);
}
