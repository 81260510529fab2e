// Times in the reader's language and time zone.

import { element } from "./dom.js";
import { locale, t } from "./texts.js";

const exact = new Intl.DateTimeFormat(locale, { dateStyle: "medium", timeStyle: "short" });
const relative = new Intl.RelativeTimeFormat(locale, { numeric: "auto" });
const UNITS = [["year", 31_557_600], ["month", 2_629_800], ["week", 604_800], ["day", 86_400], ["hour", 3_600], ["minute", 60]];

/** A time of the API: `YYYY-MM-DD HH:MM:SS` in UTC, or RFC 3339. */
export function parseTime(text) {
  return text ? new Date(text.includes("T") ? text : `${text.replace(" ", "T")}Z`) : null;
}

/** “in 3 hours”. */
export function fromNow(date) {
  const seconds = (date - Date.now()) / 1000;
  const [unit, length] = UNITS.find(([, size]) => Math.abs(seconds) >= size) ?? [];
  return unit ? relative.format(Math.round(seconds / length), unit) : t("now");
}

export const isOver = (date) => date < Date.now();

/** A time relative to now, which stays right while the page is open. */
export function timeFromNow(date) {
  return element("time", { datetime: date.toISOString(), title: exact.format(date), "data-relative": true }, fromNow(date));
}

/** A date with its time of day. */
export function exactTime(date) {
  return element("time", { datetime: date.toISOString() }, exact.format(date));
}

setInterval(() => {
  for (const time of document.querySelectorAll("time[data-relative]")) {
    const text = fromNow(new Date(time.dateTime));
    if (time.textContent !== text) time.textContent = text;
  }
}, 20_000);

/** The value of an `<input type="datetime-local">`, in the reader's time zone. */
export function toLocalInput(date) {
  if (!date) return "";
  const local = new Date(date.getTime() - date.getTimezoneOffset() * 60_000);
  return local.toISOString().slice(0, 16);
}

/** The time of such a field as RFC 3339, or `null` if it is empty. */
export function fromLocalInput(value) {
  return value ? new Date(value).toISOString().replace(/\.\d+/, "") : null;
}
