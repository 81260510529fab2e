// Rows of a list that are selected, and what is done with all of them.

import { eachOf } from "./admin-api.js";
import { action, confirm } from "./admin-list.js";
import { element, foreign, notify } from "./dom.js";
import { t } from "./texts.js";

/** The names that are shown before something is done with them. */
const NAMED = 5;

function namesOf(rows, nameOf) {
  const names = rows.slice(0, NAMED).map((row) => element("li", {}, foreign(nameOf(row))));
  return element("ul", {}, names, rows.length > NAMED ? element("li", {}, "…") : null);
}

/**
 * A selection of rows, which have an `id`. `nameOf` is what a row is called, and `canSelect` says which rows can be selected.
 * `works` has for each button its text, the text that asks before, the call for an identifier, and attributes. `refresh` is
 * called afterwards; what failed stays selected.
 */
export function selectionOf({ label, nameOf, canSelect, works, refresh }) {
  let rows = [];
  let boxes = [];
  const selected = new Set();
  const count = element("p", { id: "selected", role: "status", tabindex: -1 });
  const all = element("input", { type: "checkbox", onchange: () => choose(all.checked ? rows.map(({ id }) => id) : []) });

  function update() {
    for (const box of boxes) box.checked = selected.has(box.value);
    count.textContent = t("selected", { count: selected.size });
    all.checked = rows.length > 0 && selected.size === rows.length;
    all.indeterminate = selected.size > 0 && !all.checked;
    buttons.hidden = selected.size === 0;
    bar.hidden = rows.length === 0;
  }

  function choose(ids) {
    selected.clear();
    for (const id of ids) selected.add(id);
    update();
  }

  const button = ([text, question, work, attributes]) => action(t(text), async () => {
    const chosen = rows.filter(({ id }) => selected.has(id));
    const what = [element("span", {}, t(question, { count: chosen.length })), namesOf(chosen, nameOf)];
    return await confirm(t(text), what, t(text)) && eachOf(chosen.map(({ id }) => id), work);
  }, async ({ done, failed, message }) => {
    choose(failed);
    await refresh();
    notify(t("doneSome", { done, count: done + failed.length, message }), failed.length > 0 ? "bad" : "good");
    count.focus();
  }, attributes);
  const buttons = element("div", { class: "actions" }, works.map(button));
  const bar = element("div", { id: "selection", role: "group", "aria-label": label, hidden: true },
    element("label", { class: "check" }, all, t("selectPage")), count, buttons);

  /** The field that selects a row. */
  function box(row) {
    if (!canSelect(row)) return null;
    const field = element("input", {
      type: "checkbox", value: row.id, "aria-label": t("selectUser", { name: nameOf(row) }), onchange: () => {
        if (field.checked) selected.add(row.id);
        else selected.delete(row.id);
        update();
      },
    });
    boxes.push(field);
    return field;
  }

  /** Takes the rows that are shown. */
  function show(shown) {
    rows = shown.filter(canSelect);
    boxes = boxes.filter(({ isConnected }) => isConnected);
    choose(rows.map(({ id }) => id).filter((id) => selected.has(id)));
  }

  return { bar, box, show, clear: () => choose([]) };
}
