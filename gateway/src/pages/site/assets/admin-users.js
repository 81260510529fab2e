// The list of users.

import { countUsers, listUsers, revokeTokens, signUp, startDeletion, updateUser } from "./admin-api.js";
import { activity, choiceFilter, linkTo, list, relativeTime, sectionHeading, textFilter, timeOf } from "./admin-list.js";
import { selectionOf } from "./admin-selection.js";
import { go } from "./admin-state.js";
import { closeDialog, element, foreign, labelled, markErrors, markInvalid, notify, openDialog, sendByKeyboard, unmark, withButtonsDisabled } from "./dom.js";
import { signInAgain } from "./frame.js";
import { claims, draftOf, dropDraft, keepDraft } from "./session.js";
import { numberText, t } from "./texts.js";

const SORTS = ["created", "username", "email", "plan", "isActive", "lastSignIn", "mtime"];

/** The address of a new user, and not the password, outlasts the form. */
const DRAFT = "new-user";

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
  const input = (id, label, attributes, help) =>
    labelled(t(label), element("input", { id, required: true, autocomplete: "off", ...attributes }), help);
  const failure = element("p", { class: "error", role: "alert" });
  const close = () => closeDialog(dialog);
  const submit = (event) => {
    event.preventDefault();
    unmark(form);
    failure.textContent = "";
    const [email, password] = ["#new-email", "#new-password"].map((id) => form.querySelector(id));
    const credentials = service.checked ? { service: true } : { password: password.value };
    withButtonsDisabled(form, async () => {
      try {
        await signUp({ username: email.value.trim(), ...credentials });
        dropDraft(DRAFT);
        close();
        created(email.value.trim());
      } catch (error) {
        if (error.status === 401) await signInAgain((text) => { failure.textContent = text; });
        else if (["username-taken", "email-taken"].includes(error.code)) markInvalid(email, error.message);
        else if (!markErrors(form, error, { username: "new-email", email: "new-email", password: "new-password" })) failure.textContent = error.message;
      }
    });
  };
  const passwordField = input("new-password", "password", { type: "password", autocomplete: "new-password" }, t("passwordRule"));
  const chooseKind = () => { passwordField.hidden = passwordField.querySelector("input").disabled = service.checked; };
  const service = element("input", { type: "checkbox", onchange: chooseKind, "aria-describedby": "new-service-help" });
  const form = element("form", { onsubmit: submit }, element("h2", { id: "dialog-title" }, t("newUser")),
    input("new-email", "email", { type: "email", value: draftOf(DRAFT), oninput: ({ target }) => keepDraft(DRAFT, target.value) }),
    element("div", { class: "field" }, element("label", { class: "check" }, service, t("serviceAccount")),
      element("p", { class: "soft small", id: "new-service-help" }, t("serviceHelp"))),
    passwordField, failure,
    element("div", { class: "actions" }, element("button", {}, t("create")),
      element("button", { type: "button", class: "plain", onclick: close }, t("cancel"))));
  const dialog = element("dialog", { "aria-labelledby": "dialog-title" }, form);
  sendByKeyboard(form);
  openDialog(dialog);
}

export function show(view, state) {
  let counted = "";
  const total = element("span", {});
  const showCount = async (current, summary) => {
    const { search, active, email, scope, plan, vendor } = current;
    const key = JSON.stringify([search, active, email, scope, plan, vendor]);
    if (key === counted) return;
    counted = key;
    total.remove();
    // Counting may take longer than a page, so the page does not wait for it.
    const all = await countUsers(current).catch(() => null);
    if (all === null || key !== counted) return;
    total.textContent = ` · ${t("users", { count: numberText(all) })}`;
    summary.append(total);
  };
  const exact = (id) => textFilter(id, {}, t("wholeValue"));
  const selection = selectionOf({
    label: t("selection"), nameOf: ({ username }) => username, canSelect: ({ id }) => id !== claims().id,
    refresh: () => users.refresh(),
    works: [
      ["deactivate", "deactivateSome", (id) => updateUser(id, { isActive: false })],
      ["signOutUser", "signOutSome", revokeTokens],
      ["deleteUser", "deleteSome", startDeletion, { class: "reject" }],
    ],
  });
  const users = list({
    label: t("section users"), state, selection, sort: "created:-1", columns, load: listUsers, loaded: showCount,
    sorts: SORTS.map((field) => [field, t(field === "isActive" ? "state" : field)]),
    filters: [
      textFilter("search"),
      choiceFilter("active", [["", t("all")], ["true", t("active")], ["false", t("inactive")]]),
      exact("email"), exact("scope"), exact("plan"), exact("vendor"),
    ],
  });
  const created = async (email) => {
    await go({ view: "users", search: email });
    notify(t("userCreated"), "good");
  };
  const create = element("button", { type: "button", onclick: () => createUser(created) }, t("newUser"));
  view.append(element("div", { class: "bar" }, sectionHeading("users"), create), ...users.elements);
  return null;
}
