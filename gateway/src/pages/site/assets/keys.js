// The API keys of a user: a list in which each can be ended, and a form that makes one. They have a page of their own, and
// are a part of the page of a user for administrators.

import { call } from "./api.js";
import { $, element, focusHeading, foreign, ignoreSecondPress, labelled, markErrors, notify, unmark, withButtonsDisabled } from "./dom.js";
import { isUncertain } from "./http.js";
import { ownPage } from "./own-page.js";
import { token } from "./session.js";
import { addTexts, language, t } from "./texts.js";
import { parseTime, timeFromNow } from "./times.js";

const { texts } = await (language === "de" ? import("./texts/keys-de.js") : import("./texts/keys-en.js"));
addTexts(texts);

const SCOPES = ["tasks:read", "tasks:write", "tasks:decide", "users:read", "users:write", "admin"];
const USUAL = ["tasks:read", "tasks:write"];

const time = (text) => timeFromNow(parseTime(text));

/** Shows the keys at a path of the API in `place`. `scopes` says which scopes a new one can have. */
export async function showKeys(place, path, failed, scopes = SCOPES) {
  const list = element("div", {});
  const reload = async () => {
    const keys = await call("GET", path, { token: token() });
    list.replaceChildren(keys.length > 0
      ? element("ul", { class: "rows keys" }, keys.map((key) => row(key, path, reload, failed)))
      : element("p", { class: "empty" }, t("noKeys")));
    ignoreSecondPress(place);
  };
  await reload();
  place.replaceChildren(list, form(path, reload, failed, scopes));
}

function row(key, path, reload, failed) {
  const change = (method, address, done) => () => withButtonsDisabled(item, async () => {
    try {
      await call(method, address, { token: token() });
      await reload();
      notify(done, "good");
      focusHeading();
    } catch (error) {
      failed(error);
    }
  });
  const button = (label, run) => element("button",
    { type: "button", class: "plain", onclick: run, "aria-label": `${label}: ${key.name}` }, label);
  const isOff = key.confirmed === false;
  const address = `${path}/${key.id}`;
  const item = element("li", {},
    element("p", {}, element("strong", {}, foreign(key.name)), isOff ? element("span", { class: "status rejected" }, t("keyOff")) : null),
    element("p", { class: "small soft" }, element("code", {}, key.scopes.join(" "))),
    element("p", { class: "small soft" }, element("span", {}, t("keyMade"), " ", time(key.created)),
      element("span", {}, t("lastUse"), " ", key.lastUsed ? time(key.lastUsed) : t("never")),
      element("span", {}, t("keyExpires"), " ", key.expires ? time(key.expires) : t("never"))),
    element("div", { class: "actions" },
      // Only administrators confirm keys, at the paths of users.
      isOff && path.startsWith("/users/") ? button(t("confirmKey"), change("POST", `${address}/confirm`, t("keyConfirmed"))) : null,
      button(t("endKey"), change("DELETE", address, t("keyEnded")))));
  return item;
}

function form(path, reload, failed, scopes) {
  const input = (id, attributes) => element("input", { id, autocomplete: "off", ...attributes });
  const boxes = scopes.map((scope) => input(`scope-${scope.replace(":", "-")}`, { type: "checkbox", value: scope, checked: USUAL.includes(scope) }));
  const name = input("name", { required: true, dir: "auto" });
  const end = input("expires", { type: "date", max: "9999-12-30" });
  const made = element("div", {});
  const submit = (event) => {
    event.preventDefault();
    unmark(created);
    withButtonsDisabled(created, async () => {
      try {
        const body = { name: name.value, scopes: boxes.filter((box) => box.checked).map((box) => box.value) };
        if (end.value) body.expires = new Date(`${end.value}T23:59:59`).toISOString();
        const { key } = await call("POST", path, { token: token(), body });
        created.reset();
        made.replaceChildren(told(key));
        made.querySelector("input").focus();
        await reload();
      } catch (error) {
        if (!markErrors(created, error)) failed(error);
        // The key may be there all the same.
        if (isUncertain(error)) await reload().catch(() => {});
      }
    });
  };
  const created = element("form", { class: "card", onsubmit: submit }, element("h2", {}, t("makeKey")),
    labelled(t("keyName"), name),
    element("fieldset", { class: "field", id: "scopes" }, element("legend", {}, t("keyScopes")),
      boxes.map((box) => element("label", { class: "check" }, box, element("code", {}, box.value)))),
    labelled(t("keyEnd"), end, t("keyEndHelp")),
    element("div", { class: "actions" }, element("button", {}, t("makeKey"))), made);
  return created;
}

/** The text of a new key, which is told only once. */
function told(key) {
  const field = element("input", { id: "new-key", readonly: true, value: key, spellcheck: "false", autocomplete: "off", dir: "ltr",
    onfocus: () => field.select() });
  return labelled(t("newKey"), field, t("newKeyHelp"));
}

/** Shows the page of a person's own keys. */
export function showOwnKeys() {
  const { start, failed } = ownPage("keysTitle", async () => {
    const keys = element("div", {});
    await showKeys(keys, "/user/keys", failed);
    $("content").replaceChildren(element("h1", {}, t("keysTitle")), element("p", { class: "soft" }, t("keysHelp")), keys,
      element("p", {}, element("a", { href: "/account" }, t("accountTitle"))));
  });
  return start();
}
