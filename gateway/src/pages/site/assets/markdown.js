// Renders the Markdown of descriptions and comments, which may come from anyone.
//
// The parser only reads the text: every element is made here, by name, and everything else becomes text. So HTML is shown as it
// was written, images become links, and links lead to the web or to mailboxes.

import { Marked } from "./vendor/marked.esm.js";
import { element } from "./dom.js";
import { t } from "./texts.js";

// A description without any Markdown keeps its lines.
const marked = new Marked({ gfm: true, breaks: true, tokenizer: { table } });

const SAFE = /^(?:https?:\/\/|mailto:)/i;
/** The host of an address in the text of a link. */
const HOST = /(?:https?:\/\/|(?=\bwww\.))([^\s/?#]*)/i;
const ENTITY = /&(?:#\d{1,7}|#x[\da-f]{1,6}|[a-z][\da-z]{1,31});/gi;
const RIGHT_TO_LEFT = /[\u0590-\u08ff\ufb1d-\ufdff\ufe70-\ufefc]/;
/** A cell with a number and at most this many characters, such as an amount, is not broken into lines. */
const AMOUNT = 24;
/** What stands at the beginning of a code block and is the name of its language, which is not shown. */
const LANGUAGE = /^[a-z][\w+#.-]{0,15}$/i;

/** The cells of a table's row, as the parser splits it. */
const cellsOf = (row) => row.replace(/\\./g, "__").trim().replace(/^\||\|$/g, "").split("|");

/**
 * Reads a table. The parser fills short rows up and cuts long ones: a table that would get more cells than it has characters, or
 * lose some, is shown as it was written.
 */
function table(source) {
  const [raw, header, line = "", body = ""] = this.rules.block.table.exec(source) ?? [];
  const columns = cellsOf(header ?? "").length;
  // Otherwise it is a heading or a paragraph for the parser.
  if (!/[:|]/.test(line) || cellsOf(line).length !== columns) return false;
  const rows = body.split("\n");
  return (columns * rows.length > raw.length || rows.some((row) => cellsOf(row).length > columns)) && { type: "html", raw };
}

/** Text whose entities, such as `&copy;`, are characters. */
function decoded(text) {
  return text.replace(ENTITY, (entity) => {
    const area = document.createElement("textarea");
    area.innerHTML = entity;
    return area.value;
  });
}

const inline = (tokens) => tokens.map((token) => (INLINE[token.type] ?? INLINE.text)(token));
const wrap = (name) => ({ tokens }) => element(name, {}, inline(tokens));

/**
 * A link, and after it what would not be seen: its title, an address to which it does not lead, and where it leads if its text is
 * another address.
 */
function link({ href: address, title, text }, attributes, content) {
  const href = decoded(address);
  const note = title ? ` (${decoded(title)})` : "";
  if (!SAFE.test(href)) return [content, address && text && address !== text ? ` (${href})` : "", note];
  const made = element("a", { ...attributes, href, target: "_blank", rel: "noopener noreferrer nofollow" }, content);
  // Links do not nest: an image in a link is a text of it.
  for (const inner of made.querySelectorAll("a")) inner.replaceWith(element("span", { class: inner.className || null }, [...inner.childNodes]));
  const [, host] = made.textContent.replace(/[\p{Cf}\p{DI}]/gu, "").match(HOST) ?? [];
  const isOther = host !== undefined && host.toLowerCase() !== made.host;
  return [made, isOther ? ` (${made.host || href})` : "", note];
}

const INLINE = {
  text: ({ tokens, text, escaped, raw }) => (tokens ? inline(tokens) : escaped ? text : decoded(text ?? raw)),
  escape: ({ text }) => text,
  html: ({ raw }) => raw,
  codespan: ({ text }) => element("code", {}, text),
  br: () => element("br"),
  strong: wrap("strong"),
  em: wrap("em"),
  del: wrap("del"),
  checkbox: ({ checked }) => (checked ? "☑ " : "☐ "),
  link: (token) => link(token, {}, token.text ? inline(token.tokens) : token.href),
  // Nothing is loaded from other servers, which would tell them who reads the task.
  image: (token) => link(token, { class: "image" }, token.text || token.href),
};

/** The direction of a part with parts of its own, by its first letter. */
function directionOf(text) {
  const [letter = ""] = text.match(/\p{L}/u) ?? [];
  return RIGHT_TO_LEFT.test(letter) ? "rtl" : "ltr";
}

function cell(name, { tokens, align, text }) {
  const plain = text.replace(/[*_~]/g, "").trim();
  const isAmount = plain.length <= AMOUNT && /\d/.test(plain);
  const classes = [align === "right" || align === "center" ? align : "", isAmount ? "amount" : ""];
  return element(name, { dir: "auto", class: classes.filter(Boolean).join(" ") || null }, inline(tokens));
}

function listItem({ tokens, task, checked, loose, raw }, headings) {
  const isMarked = tokens.some(({ type }) => type === "checkbox") || tokens[0]?.tokens?.some(({ type }) => type === "checkbox");
  const box = task && !isMarked ? INLINE.checkbox({ checked }) : null;
  const parts = tokens.map((token) => (token.type === "text" && !loose ? INLINE.text(token) : blocks([token], headings)));
  const number = parseInt(raw, 10);
  // An item that is written as `1.` has the number after the one before it.
  const value = number >= 0 && number !== 1 ? number : null;
  return element("li", { class: task ? "choice" : null, value }, box, parts);
}

const BLOCK = {
  space: () => null,
  // What links refer to. It may be there without one.
  def: ({ raw }) => element("p", { dir: "auto" }, raw.trim()),
  hr: () => element("hr"),
  html: ({ raw }) => element("p", { dir: "auto" }, raw.trim().split("\n").flatMap((line, number) => (number ? [element("br"), line] : [line]))),
  code: ({ text, lang }) => element("pre", { tabindex: 0 }, element("code", {}, lang && !LANGUAGE.test(lang) ? `${lang}\n${text}` : text)),
  paragraph: ({ tokens }) => element("p", { dir: "auto" }, inline(tokens)),
  text: (token) => element("p", { dir: "auto" }, INLINE.text(token)),
  checkbox: (token) => INLINE.checkbox(token),
  heading: ({ tokens, depth }, headings) => element(`h${headings.level(depth)}`, { dir: "auto", class: `level-${depth}` }, inline(tokens)),
  blockquote: ({ tokens, text }, headings) => element("blockquote", { dir: directionOf(text) }, blocks(tokens, headings)),
  list: ({ ordered, items, raw }, headings) => element(ordered ? "ol" : "ul",
    { dir: directionOf(raw) }, items.map((item) => listItem(item, headings))),
  table: ({ header, rows, raw }) => element("div", { class: "scroll", tabindex: 0, role: "group", "aria-label": t("table") },
    element("table", { dir: directionOf(raw) }, element("thead", {}, element("tr", {}, header.map((one) => cell("th", one)))),
      element("tbody", {}, rows.map((row) => element("tr", {}, row.map((one) => cell("td", one))))))),
};

const blocks = (tokens, headings) => tokens.map((token) => (BLOCK[token.type] ?? BLOCK.text)(token, headings));

/** Levels without gaps below the page's only `h1`, whatever level a text begins with. */
function headingLevels(tokens) {
  const depths = tokens.filter(({ type }) => type === "heading").map(({ depth }) => depth);
  const highest = Math.min(6, ...depths);
  let last = 1;
  return {
    level(depth) {
      last = Math.min(depth - highest + 2, last + 1, 6);
      last = Math.max(last, 2);
      return last;
    },
  };
}

/** The nodes of a Markdown text. A text that is nested too deeply is shown as it was written. */
export function render(text) {
  const fragment = document.createDocumentFragment();
  try {
    const tokens = marked.lexer(text);
    fragment.append(...blocks(tokens, headingLevels(tokens)).flat(Infinity).filter(Boolean));
  } catch {
    fragment.append(element("p", { class: "plain-text", dir: "auto" }, text));
  }
  return fragment;
}
