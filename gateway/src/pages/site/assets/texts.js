// The texts of the pages in the reader's language.

const LANGUAGES = ["en", "de"];

const wanted = navigator.languages.find((tag) => LANGUAGES.includes(tag.slice(0, 2).toLowerCase())) ?? "en";

/** The language of the texts. */
export const language = wanted.slice(0, 2).toLowerCase();
/** The language with its region, for dates and numbers. */
export const locale = wanted;

document.documentElement.lang = language;
const { texts } = await import(`./texts/${language}.js`);

/** Adds the texts of a page that has many. */
export const addTexts = (more) => Object.assign(texts, more);

/** A text with values for the names in braces. Without `missing`, every text must exist. */
export function t(key, values = {}, missing = key) {
  const text = texts[key] ?? missing;
  if (typeof text === "function") return text(values);
  return text.replaceAll(/\{(\w+)\}/g, (_, name) => values[name] ?? "");
}

/** A text as a list of nodes: the values may be elements. */
export function tWith(key, values) {
  return texts[key].split(/(\{\w+\})/).map((part) => (part.startsWith("{") ? values[part.slice(1, -1)] : part));
}
