// The texts of the pages in the reader's language.

const LANGUAGES = ["en", "de"];

/** The languages that the browser asks for, as BCP 47 has them. Systems name some in their own way, such as `de_DE.UTF-8`. */
const asked = [...(navigator.languages ?? []), navigator.language ?? ""]
  .map((tag) => String(tag).replace(/_/g, "-").replace(/[^\w-].*$/, "").replace(/-+$/, ""));
const languageOf = (tag) => tag.toLowerCase().split("-")[0];
const wanted = asked.find((tag) => LANGUAGES.includes(languageOf(tag))) ?? "en";

/** The language of the texts. */
export const language = languageOf(wanted);
/** The language with its region, for dates and numbers. */
export const locale = isKnown(wanted) ? wanted : language;

function isKnown(tag) {
  try {
    return Intl.DateTimeFormat.supportedLocalesOf([tag]).length > 0;
  } catch {
    return false;
  }
}

document.documentElement.lang = language;
const { texts } = await (language === "de" ? import("./texts/de.js") : import("./texts/en.js"));

/** Adds the texts of a page that has many. */
export const addTexts = (more) => Object.assign(texts, more);

/** A text with values for the names in braces. Without `missing`, every text must exist. */
export function t(key, values = {}, missing = key) {
  const text = texts[key] ?? missing;
  if (typeof text === "function") return text(values, numberText);
  return text.replace(/\{(\w+)\}/g, (_, name) => values[name] ?? "");
}

/** A text as a list of nodes: the values may be elements. */
export function tWith(key, values) {
  return texts[key].split(/(\{\w+\})/).map((part) => (part.startsWith("{") ? values[part.slice(1, -1)] : part));
}

/** A number as people of the language write it. */
export function numberText(value) {
  try {
    return new Intl.NumberFormat(locale).format(value);
  } catch {
    return String(value);
  }
}
