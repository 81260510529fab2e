// The list of users.

import { countUsers, listUsers } from "./admin-api.js";
import { badge, choiceFilter, heading, linkTo, list, relativeTime, textFilter, timeOf } from "./admin-list.js";
import { element, foreign } from "./dom.js";
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

export function show(view, state) {
  let counted = "";
  let count = null;
  const showCount = async (current, summary) => {
    const { search, active, scope, plan, vendor } = current;
    const key = JSON.stringify([search, active, scope, plan, vendor]);
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
      textFilter("scope"), textFilter("plan"), textFilter("vendor"),
    ],
  });
  view.append(heading(t("section users")), ...users.elements);
  view.querySelector(".filters").firstElementChild.classList.add("search");
  return null;
}
