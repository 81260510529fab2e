// One user: change, deactivate, sign out, delete.

import { loadUser, revokeTokens, startDeletion, updateUser } from "./admin-api.js";
import { deletionCard } from "./admin-deletions.js";
import { action, activity, confirm, heading, linkTo, timeOf } from "./admin-list.js";
import { failed, go, urlOf } from "./admin-state.js";
import { element, foreign, labelled, markErrors, markInvalid, notLoaded, notify, unmark, withButtonsDisabled } from "./dom.js";
import { claims } from "./session.js";
import { t, tWith } from "./texts.js";

/** A text with commas as a list. */
const parts = (text) => text.split(",").map((part) => part.trim()).filter(Boolean);
const joined = (value) => [value ?? []].flat().join(", ");

function fieldsOf(user) {
  const input = (id, value, attributes) => element("input", { id, value, autocomplete: "off", dir: "auto", ...attributes });
  return [
    labelled(t("username"), input("username", user.username, { type: "email", required: true })),
    labelled(t("email"), input("email", user.email, { type: "email", required: true })),
    labelled(t("plan"), input("plan", user.plan, { required: true })),
    labelled(t("scope"), input("scope", joined(user.scope)), t("commas")),
    labelled(t("vendor"), input("vendor", joined(user.vendor)), t("commas")),
    user.service ? null
      : labelled(t("newPassword"), input("password", "", { type: "password", autocomplete: "new-password" }), t("passwordHelp")),
  ];
}

/** What is written in the fields, by their ids. */
const writtenIn = (form) => Object.fromEntries([...form.querySelectorAll("input")].map(({ id, value }) => [id, value]));

/**
 * What the form changes of a user. Other fields are left as they are, because a text may have what its field cannot show: commas, or
 * spaces at its ends.
 */
function changesOf(written, before) {
  const changes = {};
  for (const [field, text] of Object.entries(written)) {
    if (text === before[field]) continue;
    if (field === "scope") changes.scope = parts(text);
    else if (field === "vendor") changes.vendor = parts(text).length > 0 ? parts(text) : null;
    else changes[field] = field === "password" ? text : text.trim();
  }
  return changes;
}

function editForm(user, reload) {
  const submit = (event) => {
    event.preventDefault();
    unmark(form);
    withButtonsDisabled(form, async () => {
      try {
        const changes = changesOf(writtenIn(form), before);
        if (Object.keys(changes).length > 0) await updateUser(user.id, changes);
        await reload(t("saved"), true);
      } catch (error) {
        const taken = { "username-taken": "username", "email-taken": "email" }[error.code];
        if (taken) markInvalid(form.querySelector(`#${taken}`), error.message);
        else if (!markErrors(form, error)) failed(error);
      }
    });
  };
  const form = element("form", { class: "card", onsubmit: submit }, element("h2", {}, t("edit")), fieldsOf(user),
    element("p", { class: "soft small" }, t("changesSignOut")),
    element("div", { class: "actions" }, element("button", {}, t("save"))));
  const before = writtenIn(form);
  return form;
}

function facts(user) {
  const metadata = Object.keys(user.metadata).length > 0 ? element("code", {}, foreign(JSON.stringify(user.metadata))) : null;
  const rows = [
    [t("state"), activity(user)], [t("kind"), user.service ? t("serviceAccount") : null], [t("identifier"), element("code", {}, user.id)], [t("created"), timeOf(user.created)],
    [t("mtime"), timeOf(user.mtime)], [t("lastSignIn"), timeOf(user.lastSignIn)],
    [t("components"), user.allowedPrivateComponents.length > 0 ? foreign(user.allowedPrivateComponents.join(", ")) : null],
    [t("metadata"), metadata],
  ];
  return element("dl", { class: "facts" }, rows.filter(([, value]) => value)
    .map(([name, value]) => [element("dt", {}, name), element("dd", {}, value)]));
}

/** The username, and the e-mail address if it is another one: anyone may have chosen another person's address as username. */
const nameOf = ({ username, email }) => foreign(username.toLowerCase() === email.toLowerCase() ? username : `${username} (${email})`);

/** The API keys of a user, which are loaded when they are opened. An administrator's key for a person never decides. */
function keys(user) {
  const place = element("div", {});
  const open = async (event) => {
    if (!event.target.open || place.hasChildNodes()) return;
    const scopes = ["tasks:read", "tasks:write", "users:read", "users:write"];
    if (user.service || claims().id === user.id) scopes.push("tasks:decide");
    if (user.scope.includes("admin")) scopes.push("admin");
    const { showKeys } = await import("./keys.js").catch(notLoaded);
    await showKeys?.(place, `/users/${user.id}/keys`, failed, scopes).catch(failed);
  };
  return element("details", { class: "card", ontoggle: open }, element("summary", {}, t("keysTitle")), place);
}

function tools(user, reload) {
  const name = nameOf(user);
  const setActive = async (isActive) => {
    const isSure = isActive || await confirm(t("deactivate"), tWith("deactivateText", { name }), t("deactivate"));
    return isSure && updateUser(user.id, { isActive });
  };
  const signOut = async () => await confirm(t("signOutUser"), tWith("signOutText", { name: nameOf(user) }), t("signOutUser"))
    && revokeTokens(user.id);
  const remove = async () => await confirm(t("deleteUser"), tWith("deleteText", { name: nameOf(user) }), t("deleteUser"))
    && startDeletion(user.id);
  // Who signs in as this user would end their own access.
  if (claims().id === user.id) return element("p", { class: "soft" }, t("ownAccount"));
  return element("div", { class: "actions" },
    user.isActive ? action(t("deactivate"), () => setActive(false), () => reload(t("deactivated")))
      : action(t("activate"), () => setActive(true), () => reload(t("activated"))),
    action(t("signOutUser"), signOut, () => notify(t("signedOut"), "good")),
    action(t("deleteUser"), remove, (ticket) => go({ view: "user", id: user.id, ticket }), { class: "reject" }),
    element("a", { class: "button plain", href: urlOf({ view: "audit", subject: user.id }) }, t("section audit")));
}

export function show(view, state) {
  const { id = "", ticket } = state;
  const title = heading(ticket ? t("deletion") : t("user"));
  const summary = element("section", { class: "card" });
  const body = element("div", {});
  const render = (user) => {
    title.replaceChildren(nameOf(user));
    document.title = `${user.username} · ${t("administration")}`;
    summary.replaceChildren(facts(user), tools(user, reload));
    if (!body.isConnected) view.append(summary, body);
  };
  /** Shows the user again. What is written in the form and not saved stays, unless it was just saved. */
  const reload = async (done, isSaved = false) => {
    const user = await loadUser(id);
    render(user);
    if (isSaved) body.replaceChildren(editForm(user, reload), keys(user));
    notify(done, "good");
    title.focus();
  };
  view.append(element("p", {}, linkTo({ view: "users" }, t("toUsers"))), title);
  const restarted = (other) => go({ view: "user", id, ticket: other }, "replaceState");
  // What no longer exists is not offered.
  const deleted = () => {
    summary.replaceChildren(element("p", {}, t("userDeleted")),
      element("div", { class: "actions" }, element("a", { class: "button plain", href: urlOf({ view: "users" }) }, t("toUsers"))));
    body.replaceChildren();
    view.append(summary);
  };
  if (ticket) view.append(deletionCard(id, ticket, restarted, deleted));
  loadUser(id).then((user) => {
    render(user);
    body.replaceChildren(editForm(user, reload), keys(user));
  }, (error) => {
    // The user may just have been deleted.
    if (error.status !== 404) failed(error);
    else if (!ticket) view.append(element("p", { class: "empty" }, t("noSuchUser")));
  });
  return null;
}
