// Tables with filters, an order and pages, and the dialog that asks before something is destroyed.

import { loadUser, PAGE } from "./admin-api.js";
import { change, failed, urlOf } from "./admin-state.js";
import { element, foreign, labelled, notify, withButtonsDisabled } from "./dom.js";
import { numberText, t } from "./texts.js";
import { exactTime, parseTime, timeFromNow, timeToTheSecond } from "./times.js";

const TYPING_PAUSE = 300;

/** The heading of a view. It gets the focus when the view is opened. */
export const heading = (...content) => element("h1", { tabindex: -1 }, ...content);

/** The link to a state of the page. */
export const linkTo = (state, text) => element("a", { href: urlOf(state) }, text);

/** The names of users by their identifiers, as far as they were asked for. Deleted users have none. */
const names = new Map();

/** The link to a user: the name, and the identifier until that is known. */
export function userLink(id) {
  if (!id) return "–";
  const link = linkTo({ view: "user", id }, element("code", {}, id));
  const showName = (name) => {
    link.replaceChildren(foreign(name));
    link.title = id;
  };
  if (names.has(id)) {
    const name = names.get(id);
    if (name) showName(name);
    return link;
  }
  loadUser(id).then(({ username }) => {
    names.set(id, username);
    showName(username);
  }, (error) => { if (error.status === 404) names.set(id, ""); });
  return link;
}

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

/** A text field of a filter. */
export const textFilter = (id, attributes = {}) => ({ id, field: element("input", { id, type: "search", autocomplete: "off", ...attributes }) });

/** A choice of a filter. `options` has the value and the text of each. */
export const choiceFilter = (id, options) =>
  ({ id, field: element("select", { id }, options.map(([value, text]) => element("option", { value }, text))) });

/** A button that runs `work`, and then `done`. */
export function action(text, work, done, attributes = {}) {
  const press = () => withButtonsDisabled(button.parentElement, async () => {
    try {
      const result = await work();
      if (result !== false) await done(result);
    } catch (error) {
      failed(error);
    }
  });
  const button = element("button", { type: "button", class: "plain", onclick: press, ...attributes }, text);
  return button;
}

/** Asks before something is destroyed, whose name is in `text`. Returns whether the person confirms. */
export function confirm(title, text, verb) {
  return new Promise((resolve) => {
    const close = (value) => dialog.close(value);
    const dialog = element("dialog", {
      "aria-labelledby": "confirm-title", "aria-describedby": "confirm-text", role: "alertdialog",
      onclose: () => {
        dialog.remove();
        resolve(dialog.returnValue === "yes");
      },
    }, element("h2", { id: "confirm-title" }, title), element("p", { id: "confirm-text" }, text),
    element("div", { class: "actions" },
      element("button", { type: "button", class: "plain", onclick: () => close("no"), autofocus: true }, t("goBack")),
      element("button", { type: "button", class: "reject chosen", onclick: () => close("yes") }, verb)));
    document.body.append(dialog);
    dialog.showModal();
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
  const content = column.cell(row);
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

/** Where an element is: the name of its row, and its own. */
const placeOf = (focused) => ({ row: focused?.closest("tr")?.firstElementChild.textContent, name: focused?.textContent });

/** Moves the focus to the element in the same place of a table that was rendered again. */
function restoreFocus(body, { row, name }) {
  const rows = [...body.querySelectorAll("tr")];
  const same = rows.find((one) => one.firstElementChild.textContent === row) ?? rows[0];
  const targets = [...(same?.querySelectorAll("a, button, summary") ?? [])];
  (targets.find((target) => target.textContent === name) ?? targets.at(-1))?.focus();
}

/** The filters. On a phone all but the search are folded, so that the list begins on the first screen. */
function filterForm(filters, order, state) {
  const labelledFilter = ({ id, field }) => labelled(t(`filter ${id}`), field);
  const [search, others] = [filters.filter(({ id }) => id === "search"), filters.filter(({ id }) => id !== "search")];
  const fields = others.map(labelledFilter);
  if (order) fields.push(element("div", { class: "field order" }, element("label", { for: "order" }, t("sort")), order));
  if (fields.length + search.length === 0) return null;
  const isOpen = !matchMedia("(max-width: 48rem)").matches || others.some(({ id }) => state[id]);
  return element("form", { role: "search", onsubmit: (event) => event.preventDefault() }, search.map(labelledFilter),
    fields.length > 0 ? element("details", { class: "fold", open: isOpen },
      element("summary", {}, t("filters")), element("div", { class: "filters" }, fields)) : null);
}

/**
 * A list with filters and pages. `load` returns the rows of a page of a state and the position of the next one;
 * `position` is the parameter with that position. Returns its elements and what loads it again.
 */
export function list({ label, state, filters = [], sorts = [], sort, columns, load, position = "offset", loaded = () => {} }) {
  let current = { sort, ...state };
  let newest = 0;
  let shown = "";
  const summary = element("p", { class: "soft small", role: "status", id: "summary" }, t("loading"));
  const body = element("div", { id: "list", "aria-busy": "true" });
  const pages = element("nav", { class: "pages", "aria-label": t("pages") });

  const go = (changes) => {
    current = { ...current, [position]: "", ...changes };
    change({ ...current, sort: current.sort === sort ? "" : current.sort });
    showOrder();
    return refresh().catch(() => {});
  };
  const order = sorts.length === 0 ? null : element("select", { id: "order", onchange: () => go({ sort: order.value }) },
    sorts.flatMap(([field, text]) => [["1", "▲"], ["-1", "▼"]].map(([direction, sign]) =>
      element("option", { value: `${field}:${direction}` }, `${text} ${sign}`))));
  const showOrder = () => { if (order) order.value = current.sort; };

  function render({ rows, next }) {
    const isFocused = body.contains(document.activeElement);
    const focused = placeOf(document.activeElement);
    const sortBy = (chosen) => go({ sort: chosen });
    const text = JSON.stringify([rows, current.sort]);
    // A person may be pressing a button of a row, so rows that are the same stay.
    if (text !== shown) {
      body.replaceChildren(rows.length > 0 ? table(label, columns(refresh), rows, { sort: current.sort, sortBy })
        : element("p", { class: "empty" }, t("nothingFound")));
      if (isFocused) restoreFocus(body, focused);
    }
    shown = text;
    const link = (at, text) => element("a", { class: "button plain", href: urlOf({ ...current, [position]: at }) }, text);
    const offset = Number(current.offset) || 0;
    pages.replaceChildren(
      offset > PAGE || (current[position] && position !== "offset") ? link("", t("firstPage")) : "",
      offset > 0 ? link(offset > PAGE ? String(offset - PAGE) : "", t("previousPage")) : "",
      next ? link(next, t("nextPage")) : "");
    const range = { from: numberText(offset + 1), to: numberText(offset + rows.length), isKnown: position === "offset", count: rows.length };
    summary.textContent = offset > 0 || next ? t("rowsFrom", range) : t("rows", { count: rows.length });
  }

  async function refresh() {
    const request = ++newest;
    body.setAttribute("aria-busy", "true");
    try {
      const page = await load(current);
      if (request !== newest) return;
      // Behind the end there is nothing to go on from.
      if (page.rows.length === 0 && Number(current.offset) > 0) return go({ offset: "" });
      render(page);
      loaded(current, summary);
    } catch (error) {
      if (request === newest) failed(error);
      throw error;
    } finally {
      if (request === newest) body.removeAttribute("aria-busy");
    }
  }

  let typing;
  for (const { id, field } of filters) {
    field.value = state[id] ?? "";
    const apply = () => {
      clearTimeout(typing);
      if (field.value.trim() === (current[id] ?? "")) return;
      notify("");
      go({ [id]: field.value.trim() });
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
  return { elements: [form, summary, body, pages].filter(Boolean), refresh, go };
}
