// Renders the Markdown of descriptions and comments, which may come from anyone.
//
// HTML in it is shown as text, images become links, and the result passes a sanitizer that lets only these
// elements and links to the web and to mailboxes through.

import { Marked } from "./vendor/marked.esm.js";
// Not a module: it defines `DOMPurify`.
import "./vendor/dompurify.min.js";
import { t } from "./texts.js";

const ALLOWED = {
  ALLOWED_TAGS: ["a", "blockquote", "br", "code", "del", "em", "h2", "h3", "h4", "h5", "h6", "hr", "li", "ol", "p",
    "pre", "strong", "table", "tbody", "td", "th", "thead", "tr", "ul"],
  ALLOWED_ATTR: ["href", "start"],
  ALLOW_DATA_ATTR: false,
  ALLOW_ARIA_ATTR: false,
  ALLOWED_URI_REGEXP: /^(?:https?:\/\/|mailto:)/i,
  RETURN_DOM_FRAGMENT: true,
};
const BLOCKS = "blockquote, h2, h3, h4, h5, h6, li, p, td, th";

const asText = (text) => text.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;").replaceAll('"', "&quot;");

const marked = new Marked({
  gfm: true,
  // A description without any Markdown keeps its lines.
  breaks: true,
  renderer: {
    html: ({ text, block }) => (block ? `<p>${asText(text.trim()).replaceAll("\n", "<br>")}</p>` : asText(text)),
    // Nothing is loaded from other servers, which would tell them who reads the task.
    image: ({ href, text }) => `<a href="${asText(href)}">${asText(text || href)}</a>`,
    checkbox: ({ checked }) => (checked ? "☑ " : "☐ "),
    heading({ tokens, depth }) {
      // The title of the page is the only `h1`.
      const name = `h${Math.min(depth + 1, 6)}`;
      return `<${name}>${this.parser.parseInline(tokens)}</${name}>`;
    },
  },
});

/** The nodes of a Markdown text. */
export function render(text) {
  const fragment = window.DOMPurify.sanitize(marked.parse(text), ALLOWED);
  for (const link of fragment.querySelectorAll("a[href]")) {
    link.target = "_blank";
    link.rel = "noopener noreferrer nofollow";
  }
  for (const block of fragment.querySelectorAll(BLOCKS)) block.dir = "auto";
  for (const table of fragment.querySelectorAll("table")) {
    const scroll = document.createElement("div");
    scroll.className = "scroll";
    scroll.tabIndex = 0;
    scroll.setAttribute("role", "group");
    scroll.setAttribute("aria-label", t("table"));
    table.replaceWith(scroll);
    scroll.append(table);
  }
  return fragment;
}
