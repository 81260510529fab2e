// Times in the reader's language and time zone.

import { element } from "./dom.js";
import { locale, t } from "./texts.js";

const UNITS = [["year", 31_557_600], ["month", 2_629_800], ["week", 604_800], ["day", 86_400], ["hour", 3_600], ["minute", 60]];
/** A clock that differs less from the server's is right. */
const TOLERANCE = 60_000;

/** A function that formats a value; where the browser cannot, `otherwise` does. */
function formatter(make, otherwise) {
  let format = null;
  try {
    format = make();
  } catch {
    // An old browser, or a system with a time zone that it does not know.
  }
  return (...values) => {
    try {
      return format.format(...values);
    } catch {
      return otherwise(...values);
    }
  };
}

const plain = (date) => `${date.toISOString().slice(0, 16).replace("T", " ")} UTC`;
const dates = (options) => formatter(() => new Intl.DateTimeFormat(locale, options), plain);
const clock = { hour: "numeric", minute: "2-digit" };
const day = { year: "numeric", month: "short", day: "numeric" };
const exact = dates({ ...day, ...clock });
const exactWithZone = dates({ ...day, ...clock, timeZoneName: "short" });
const toTheSecond = dates({ ...day, ...clock, second: "2-digit", timeZoneName: "short" });
const hourAndMinute = dates(clock);
const relative = formatter(() => new Intl.RelativeTimeFormat(locale), () => "");

/** How much the server's clock is ahead. */
let ahead = 0;

/** Learns the server's time from the header `Date`: the clock of a device may be wrong. */
export function setServerTime(header) {
  const difference = Date.parse(header ?? "") - Date.now();
  if (Number.isFinite(difference)) ahead = Math.abs(difference) < TOLERANCE ? 0 : difference;
}

/** The time now, by the server's clock. */
const now = () => Date.now() + ahead;

/** A time of the API: `YYYY-MM-DD HH:MM:SS` in UTC, or RFC 3339. `null` for what is none. */
export function parseTime(text) {
  if (!text) return null;
  const date = new Date(text.includes("T") ? text : `${text.replace(" ", "T")}Z`);
  return Number.isNaN(date.getTime()) ? null : date;
}

/** “in 3 hours”, in whole units: what is due never seems to be due later. */
export function fromNow(date) {
  const seconds = (date - now()) / 1000;
  const [unit, length] = UNITS.find(([, size]) => Math.abs(seconds) >= size) ?? [];
  return unit ? relative(Math.trunc(seconds / length), unit) : t("now");
}

export const isOver = (date) => date < now();

/** The first minute of the day at which some seconds are over. */
export const timeOfDay = (seconds) => hourAndMinute(new Date(Date.now() + seconds * 1_000 + 59_999));

/** A time relative to now, which stays right while the page is open. */
export function timeFromNow(date) {
  return element("time", { datetime: date.toISOString(), title: exactWithZone(date), "data-relative": true }, fromNow(date));
}

const timeAs = (format) => (date) => element("time", { datetime: date.toISOString(), title: exactWithZone(date) }, format(date));
/** A date with its time of day. */
export const exactTime = timeAs(exact);
/** The same with the time zone. */
export const zonedTime = timeAs(exactWithZone);
/** The same with seconds and the time zone. */
export const timeToTheSecond = timeAs(toTheSecond);
/** The text of a time with its time zone. */
export const zonedText = (date) => (date ? exactWithZone(date) : "");

/** The reader's time zone. */
export function timeZone() {
  try {
    return new Intl.DateTimeFormat(locale).resolvedOptions().timeZone ?? "UTC";
  } catch {
    return "UTC";
  }
}

setInterval(() => {
  for (const time of document.querySelectorAll("time[data-relative]")) {
    const text = fromNow(new Date(time.dateTime));
    if (time.textContent !== text) time.textContent = text;
  }
}, 20_000);

/** The value of an `<input type="datetime-local">` in the reader's time zone, with seconds if there are any. */
export function toLocalInput(date) {
  if (!date) return "";
  const local = new Date(date.getTime() - date.getTimezoneOffset() * 60_000).toISOString();
  return local.slice(0, date.getUTCSeconds() > 0 ? 19 : 16);
}

/** The time of such a field, or `null` if it is empty or none. */
export function fromLocalInput(value) {
  const date = value ? new Date(value) : null;
  return date && !Number.isNaN(date.getTime()) ? date : null;
}

/** Whether the clocks show this time twice, and a later time is the second one. */
export const isDouble = (date) => [30, 60].some((minutes) => toLocalInput(new Date(+date + minutes * 60_000)) === toLocalInput(date));

/** A time as RFC 3339, or `null`. */
export const toApi = (date) => date && date.toISOString().replace(/\.\d+/, "");
