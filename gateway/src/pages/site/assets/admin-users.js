// The list of users.

import { countUsers, listUsers, signUp } from "./admin-api.js";
import { badge, choiceFilter, heading, linkTo, list, relativeTime, textFilter, timeOf } from "./admin-list.js";
import { go } from "./admin-state.js";
import { closeDialog, element, foreign, labelled, markErrors, markInvalid, openDialog, sendByKeyboard, unmark, withButtonsDisabled } from "./dom.js";
import { locale, t } from "./texts.js";

const SORTS = ["created", "username", "email", "plan", "isActive", "lastSignIn", "mtime"];

/** Whether a user may sign in. */
export const activity = (user) => badge(t(user.isActive ? "active" : "inactive"), user.isActive ? "good" : "bad");

const columns = () => [
  { label: t("username"), sort: "username", cell: (user) => linkTo({ view: "user", id: user.id }, foreign(user.username)) },
  { label: t("email"), sort: "email", cell: (user) => foreign(user.email) },
  { label: t("state"), sort: "isActive", cell: activity },
  { label: t("scope"), cell: (user) => foreign(user.scope.join(", ")) },
  { label: t("plan"), sort: "plan", cell: (user) => foreign(user.plan) },
  { label: t("created"), sort: "created", cell: (user) => timeOf(user.created) },
  { label: t("lastSignIn"), sort: "lastSignIn", cell: (user) => relativeTime(user.lastSignIn) },
];

/** Asks for a new user. `created` is called with the address. */
function createUser(created) {
  const input = (id, label, attributes) => labelled(t(label), element("input", { id, required: true, autocomplete: "off", ...attributes }));
  const failure = element("p", { class: "error", role: "alert" });
  const close = () => closeDialog(dialog);
  const submit = (event) => {
    event.preventDefault();
    unmark(form);
    failure.textContent = "";
    const [email, password] = ["#new-email", "#new-password"].map((id) => form.querySelector(id));
    withButtonsDisabled(form, async () => {
      try {
        await signUp(email.value.trim(), password.value);
        close();
        created(email.value.trim());
      } catch (error) {
        if (["username-taken", "email-taken"].includes(error.code)) markInvalid(email, error.message);
        else if (!markErrors(form, error, { username: "new-email", email: "new-email", password: "new-password" })) failure.textContent = error.message;
      }
    });
  };
  const form = element("form", { onsubmit: submit }, element("h2", { id: "dialog-title" }, t("newUser")),
    input("new-email", "email", { type: "email" }), input("new-password", "password", { type: "password", autocomplete: "new-password" }), failure,
    element("div", { class: "actions" }, element("button", {}, t("create")),
      element("button", { type: "button", class: "plain", onclick: close }, t("cancel"))));
  const dialog = element("dialog", { "aria-labelledby": "dialog-title" }, form);
  sendByKeyboard(form);
  openDialog(dialog);
}

export function show(view, state) {
  let counted = "";
  let count = null;
  const showCount = async (current, summary) => {
    const { search, active, email, scope, plan, vendor } = current;
    const key = JSON.stringify([search, active, email, scope, plan, vendor]);
    // Counting may take longer than a page, so the page does not wait for it.
    if (key !== counted) count = countUsers(current);
    counted = key;
    const all = await count.catch(() => null);
    if (all !== null && key === counted) {
      const shown = summary.textContent.split(" · ")[0];
      summary.textContent = `${shown} · ${t("users", { count: new Intl.NumberFormat(locale).format(all) })}`;
    }
  };
  const users = list({
    label: t("section users"), state, sort: "created:-1", columns, load: listUsers, loaded: showCount,
    sorts: SORTS.map((field) => [field, t(field === "isActive" ? "state" : field)]),
    filters: [
      textFilter("search"),
      choiceFilter("active", [["", t("all")], ["true", t("active")], ["false", t("inactive")]]),
      textFilter("email"), textFilter("scope"), textFilter("plan"), textFilter("vendor"),
    ],
  });
  const create = element("button", { type: "button", onclick: () => createUser((email) => go({ view: "users", search: email })) }, t("newUser"));
  view.append(element("div", { class: "bar" }, heading(t("section users")), create), ...users.elements);
  return null;
}
