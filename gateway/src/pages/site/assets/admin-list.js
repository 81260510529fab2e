// Tables with filters, an order and pages, and the dialog that asks before something is destroyed.

import { loadUser, PAGE } from "./admin-api.js";
import { change, failed, urlOf } from "./admin-state.js";
import { offsetOf } from "./api.js";
import { closeDialog, element, foreign, forgetFailure, ignoreSecondPress, isSaid, labelled, notify, openDialog, withButtonsDisabled } from "./dom.js";
import { numberText, t } from "./texts.js";
import { exactTime, parseTime, timeFromNow, timeToTheSecond } from "./times.js";

const TYPING_PAUSE = 300;

/** The heading of a view. It gets the focus when the view is opened. */
export const heading = (...content) => element("h1", { tabindex: -1 }, ...content);
/** The heading of a section, which is not seen: the navigation names it. */
export const sectionHeading = (name) => element("h1", { tabindex: -1, class: "unseen" }, t(`section ${name}`));

/** The link to a state of the page. */
export const linkTo = (state, text) => element("a", { href: urlOf(state) }, text);

/** The names of users by their identifiers, as promises. Deleted users have none. */
const names = new Map();

/** The name of a user, which is asked for once, or an empty text. */
function nameOf(id) {
  if (!names.has(id)) {
    names.set(id, loadUser(id).then(({ username }) => username, (error) => {
      if (error.status !== 404) names.delete(id);
      return "";
    }));
  }
  return names.get(id);
}

/** A user: the name, and the identifier until that is known. */
export function userName(id) {
  const part = element("span", { title: id }, element("code", {}, id));
  nameOf(id).then((name) => { if (name) part.replaceChildren(foreign(name)); });
  return part;
}

/** The link to a user. */
export const userLink = (id) => (id ? linkTo({ view: "user", id }, userName(id)) : "–");

/** A time of the API, or a dash. */
export function timeOf(text) {
  const date = parseTime(text);
  return date ? exactTime(date) : "–";
}

/** The same to the second, so that events of a minute have an order. */
export function secondOf(text) {
  const date = parseTime(text);
  return date ? timeToTheSecond(date) : "–";
}

/** A time relative to now, or a dash. */
export function relativeTime(text) {
  const date = parseTime(text);
  return date ? timeFromNow(date) : "–";
}

/** A word in the colour of its meaning: `good`, `bad`, `wait` or `plain`. */
export const badge = (text, kind) => element("span", { class: `status ${kind}` }, text);

/** Whether a user may sign in. */
export const activity = (user) => badge(t(user.isActive ? "active" : "inactive"), user.isActive ? "good" : "bad");

/** A text field of a filter. */
export const textFilter = (id, attributes = {}, help = "") =>
  ({ id, help, field: element("input", { id, type: "search", autocomplete: "off", ...attributes }) });

/** A choice of a filter. `options` has the value and the text of each. */
export const choiceFilter = (id, options) =>
  ({ id, field: element("select", { id }, options.map(([value, text]) => element("option", { value }, text))) });

/** A button that runs `work`, and then `done`. If it is gone afterwards, the focus is on what took its place. */
export function action(text, work, done, attributes = {}) {
  const press = async () => {
    const [region, place] = [button.closest("#list, .card"), placeOf(button)];
    await withButtonsDisabled(button.parentElement, async () => {
      try {
        const result = await work();
        if (result === false) return;
        await done(result);
        if (region) ignoreSecondPress(region);
      } catch (error) {
        failed(error);
      }
    });
    if (document.activeElement === document.body && button.getClientRects().length === 0) restoreFocus(region, place);
  };
  const button = element("button", { type: "button", class: "plain", onclick: press, ...attributes }, text);
  return button;
}

/** Asks before something is destroyed, whose name is in `text`. Returns whether the person confirms. */
export function confirm(title, text, verb) {
  return new Promise((resolve) => {
    const close = (value) => closeDialog(dialog, value);
    const dialog = element("dialog", {
      "aria-labelledby": "confirm-title", "aria-describedby": "confirm-text", role: "alertdialog",
      onclose: () => {
        // Then the focus is where it was before.
        dialog.remove();
        resolve(dialog.returnValue === "yes");
      },
    }, element("h2", { id: "confirm-title" }, title), element("div", { id: "confirm-text" }, text),
    element("div", { class: "actions" },
      element("button", { type: "button", class: "plain", onclick: () => close("no"), autofocus: true }, t("goBack")),
      element("button", { type: "button", class: "reject chosen", onclick: () => close("yes") }, verb)));
    openDialog(dialog);
  });
}

/** The head of a column. A column with `sort` is sorted by pressing it. */
function columnHead({ label, sort }, order, sortBy) {
  const [field, direction] = (order ?? "").split(":");
  const isSorted = sort && sort === field;
  const sorted = direction === "1" ? "ascending" : "descending";
  const reverse = `${sort}:${isSorted && direction === "1" ? "-1" : "1"}`;
  return element("th", { scope: "col", role: "columnheader", "aria-sort": isSorted ? sorted : null },
    sort ? element("button", { type: "button", class: "link", "data-sort": sort, onclick: () => sortBy(reverse) },
      label, element("span", { "aria-hidden": "true" }, isSorted ? (direction === "1" ? "▲" : "▼") : "")) : label);
}

/** A cell. On a phone, the label of its column is before it. */
function cellOf(column, row, position) {
  const content = [column.before?.(row), column.cell(row)];
  const attributes = { role: position === 0 ? "rowheader" : "cell", "data-label": column.label };
  return element(position === 0 ? "th" : "td", { ...attributes, scope: position === 0 ? "row" : null }, content);
}

/** A table. The first column names its rows. */
export function table(label, columns, rows, { sort, sortBy } = {}) {
  return element("div", { class: "scroll" },
    element("table", { role: "table", "aria-label": label },
      element("thead", { role: "rowgroup" }, element("tr", { role: "row" }, columns.map((column) => columnHead(column, sort, sortBy)))),
      element("tbody", { role: "rowgroup" }, rows.map((row) =>
        element("tr", { role: "row" }, columns.map((column, position) => cellOf(column, row, position)))))));
}

const targetsIn = (part) => [...(part?.querySelectorAll("a, button, summary, input") ?? [])];

/** Where an element is: the name of its row, its own, and its number among what can have the focus there. */
function placeOf(focused) {
  const row = focused.closest("tr");
  const at = targetsIn(row ?? focused.closest(".card")).indexOf(focused);
  return { row: row?.firstElementChild.textContent, rowAt: row?.rowIndex, name: focused.textContent, at };
}

/** Moves the focus to the element in the same place of a region that was rendered again, or to the heading if that is gone. */
function restoreFocus(region, { row, rowAt, name, at }) {
  const rows = [...(region?.querySelectorAll("tr") ?? [])];
  const same = rows.find((one) => one.firstElementChild.textContent === row) ?? rows[rowAt] ?? rows[rows.length - 1] ?? region;
  const targets = region?.isConnected ? targetsIn(same) : [];
  const target = targets.find((one) => name && one.textContent === name) ?? targets[at] ?? targets[rows.length > 0 ? targets.length - 1 : 0];
  (target ?? document.querySelector("#view h1"))?.focus();
}

/** Renders a region again. If it has the focus, that stays in its place. */
export function rerender(region, ...content) {
  const place = region.contains(document.activeElement) ? placeOf(document.activeElement) : null;
  region.replaceChildren(...content);
  if (place) restoreFocus(region, place);
}

/** The filters. On a phone all but the search are folded, so that the list begins on the first screen. */
function filterForm(filters, order, state) {
  const labelledFilter = ({ id, field, help }) => {
    const part = labelled(t(`filter ${id}`), field, help);
    if (field.type === "datetime-local") part.classList.add("wide");
    return part;
  };
  const [search, others] = [filters.filter(({ id }) => id === "search"), filters.filter(({ id }) => id !== "search")];
  const fields = others.map(labelledFilter);
  if (order) fields.push(element("div", { class: "field order" }, element("label", { for: "order" }, t("sort")), order));
  if (fields.length + search.length === 0) return null;
  const narrow = matchMedia("(max-width: 48rem)");
  const isOpen = !narrow.matches || others.some(({ id }) => state[id]);
  const fold = element("details", { class: "fold", open: isOpen },
    element("summary", {}, t("filters")), element("div", { class: "filters" }, fields));
  // A wide screen has nothing to open them with.
  const fit = () => {
    if (!fold.isConnected) narrow.removeEventListener("change", fit);
    else if (!narrow.matches) fold.open = true;
  };
  narrow.addEventListener("change", fit);
  return element("form", { role: "search", onsubmit: (event) => event.preventDefault() }, search.map(labelledFilter),
    fields.length > 0 ? fold : null);
}

/**
 * A list with filters and pages. `load` returns the rows of a page of a state and the position of the next one;
 * `position` is the parameter with that position. `loaded` is called with what was loaded, and `selection` has the rows that
 * are selected. Returns its elements and what loads it again.
 */
export function list({ label, state, filters = [], sorts = [], sort, columns, load, position = "offset", loaded = () => {}, selection }) {
  let current = { sort, ...state, offset: offsetOf(state.offset) || "" };
  let newest = 0;
  let shown = "";
  const range = element("span", {}, t("loading"));
  // Only what is new in it is read aloud.
  const summary = element("p", { class: "soft small", role: "status", "aria-atomic": "false", id: "summary" }, range);
  const body = element("div", { id: "list", "aria-busy": "true" });
  const pages = element("nav", { class: "pages", "aria-label": t("pages") });

  const go = (changes) => {
    current = { ...current, [position]: "", ...changes };
    selection?.clear();
    change({ ...current, sort: current.sort === sort ? "" : current.sort });
    showOrder();
    return refresh().catch(() => {});
  };
  const order = sorts.length === 0 ? null : element("select", { id: "order", onchange: () => go({ sort: order.value }) },
    sorts.flatMap(([field, text]) => [["1", "▲"], ["-1", "▼"]].map(([direction, sign]) =>
      element("option", { value: `${field}:${direction}` }, `${text} ${sign}`))));
  const showOrder = () => { if (order) order.value = current.sort; };

  function render({ rows, next }) {
    const sortBy = (chosen) => go({ sort: chosen });
    const text = JSON.stringify([rows, current.sort]);
    // A person may be pressing a button of a row, so rows that are the same stay.
    if (text !== shown) {
      const [first, ...others] = columns(refresh);
      rerender(body, rows.length === 0 ? element("p", { class: "empty" }, t("nothingFound"))
        : table(label, [{ ...first, before: selection?.box }, ...others], rows, { sort: current.sort, sortBy }));
      selection?.show(rows);
    }
    shown = text;
    const link = (at, text) => element("a", { class: "button plain", href: urlOf({ ...current, [position]: at }) }, text);
    const offset = Number(current.offset) || 0;
    rerender(pages,
      offset > PAGE || (current[position] && position !== "offset") ? link("", t("firstPage")) : "",
      offset > 0 ? link(offset > PAGE ? String(offset - PAGE) : "", t("previousPage")) : "",
      next ? link(next, t("nextPage")) : "");
    const numbers = { from: numberText(offset + 1), to: numberText(offset + rows.length), isKnown: position === "offset", count: rows.length };
    const said = offset > 0 || next ? t("rowsFrom", numbers) : t("rows", numbers);
    if (range.textContent !== said) range.textContent = said;
  }

  /** The offset of the last page with rows, before one that has none. */
  async function lastOffset(past) {
    let [low, high] = [0, Math.ceil(past / PAGE)];
    while (high - low > 1) {
      const middle = Math.floor((low + high) / 2);
      const { rows } = await load({ ...current, offset: middle * PAGE });
      [low, high] = rows.length > 0 ? [middle, high] : [low, middle];
    }
    return low * PAGE || "";
  }

  let told = null;
  async function refresh() {
    const request = ++newest;
    body.setAttribute("aria-busy", "true");
    try {
      const page = await load(current);
      if (request !== newest) return;
      if (page.rows.length === 0 && current.offset > 0) {
        const offset = await lastOffset(current.offset);
        return request === newest ? go({ offset }) : undefined;
      }
      render(page);
      loaded(current, summary, page);
      if (told && isSaid(told)) forgetFailure();
    } catch (error) {
      if (request === newest && !isSaid(error)) failed(told = error);
      throw error;
    } finally {
      if (request === newest) body.removeAttribute("aria-busy");
    }
  }

  let typing;
  for (const { id, field, toField = String, fromField = String } of filters) {
    field.value = toField(state[id] ?? "");
    const apply = () => {
      clearTimeout(typing);
      const value = fromField(field.value.trim());
      if (value === (current[id] ?? "")) return;
      notify("");
      go({ [id]: value });
    };
    field.addEventListener("change", apply);
    if (field.type !== "search") continue;
    field.addEventListener("input", () => {
      clearTimeout(typing);
      typing = setTimeout(apply, TYPING_PAUSE);
    });
  }
  showOrder();
  const form = filterForm(filters, order, state);
  refresh().catch(() => {});
  return { elements: [form, summary, selection?.bar, body, pages].filter(Boolean), refresh, go };
}
