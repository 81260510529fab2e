// Deletions of users: the list, and the progress of one.

import { cancelDeletion, listDeletions, loadDeletion, retryDeletions, startDeletion } from "./admin-api.js";
import { action, badge, confirm, linkTo, list, rerender, sectionHeading, timeOf, userLink, userName } from "./admin-list.js";
import { failed } from "./admin-state.js";
import { element, notify } from "./dom.js";
import { t, tWith } from "./texts.js";

const POLL = 1_000;
const KINDS = { "in-progress": "wait", completed: "good", failed: "bad", cancelled: "plain" };

const statusBadge = ({ status }) => badge(t(`deletion ${status}`), KINDS[status] ?? "plain");

const progressBar = ({ stepsDone, stepsTotal }) =>
  element("progress", { max: Math.max(stepsTotal, 1), value: stepsDone, "aria-label": t("progress") });

const stepsText = ({ stepsDone, stepsTotal }) => t("steps", { done: stepsDone, total: stepsTotal });

/** Why a deletion failed: the problem names the step, and says the rest in English. */
function failureOf({ failure }) {
  if (!failure) return null;
  return element("details", {},
    element("summary", { class: "overdue" }, failure.step ? tWith("stepFailed", { step: element("code", {}, failure.step) }) : t("deletion failed")),
    element("span", { lang: "en", dir: "auto" }, failure.detail ?? failure.title ?? ""));
}

async function cancel(id, ticket) {
  const isSure = await confirm(t("cancelDeletion"), tWith("cancelDeletionText", { name: userName(id) }), t("cancelDeletion"));
  return isSure && cancelDeletion(id, ticket);
}

async function retry(id) {
  const isSure = await confirm(t("retryDeletion"), tWith("retryDeletionText", { name: userName(id) }), t("retryDeletion"));
  return isSure && startDeletion(id);
}

/**
 * A card with the progress of a deletion, which follows it. `restarted` is called with the ticket of another one, and `completed`
 * when the user is deleted.
 */
export function deletionCard(id, ticket, restarted, completed) {
  const status = element("p", { role: "status" }, t("loading"));
  const body = element("div", {});
  const card = element("section", { class: "card", id: "deletion", "aria-label": t("deletion") }, status, body);
  const render = (deletion) => {
    const text = [statusBadge(deletion), ` ${stepsText(deletion)}`];
    if (status.textContent !== text.map((part) => part.textContent ?? part).join("")) status.replaceChildren(...text);
    const buttons = {
      "in-progress": () => action(t("cancelDeletion"), () => cancel(id, ticket), render),
      failed: () => action(t("retryDeletion"), () => retry(id), restarted),
      cancelled: () => action(t("retryDeletion"), () => retry(id), restarted),
    };
    if (body.dataset.status !== deletion.status) {
      rerender(body, element("div", {}), element("div", { class: "actions" }, buttons[deletion.status]?.() ?? ""));
    }
    body.dataset.status = deletion.status;
    body.firstChild.replaceChildren(progressBar(deletion),
      deletion.deletedTasks ? element("p", { class: "soft" }, t("deletedTasks", { count: deletion.deletedTasks })) : "",
      failureOf(deletion) ?? "");
    if (deletion.status === "completed") completed();
    return deletion.status === "in-progress";
  };
  const follow = async () => {
    let isRunning = true;
    try {
      isRunning = render(await loadDeletion(id, ticket));
    } catch (error) {
      if (!error.temporary) await failed(error);
      // Who signs in again sees how it goes on.
      isRunning = error.temporary || error.status === 401;
    }
    if (isRunning && card.isConnected) setTimeout(follow, POLL);
  };
  // The card is shown by then.
  queueMicrotask(follow);
  return card;
}

function buttonsOf({ userId, ticket, status }, refresh) {
  if (status === "in-progress") return action(t("cancelDeletion"), () => cancel(userId, ticket), refresh);
  if (status === "failed") return action(t("retryDeletion"), () => retry(userId), refresh);
  return "";
}

const columns = (refresh) => [
  { label: t("user"), cell: ({ userId }) => userLink(userId) },
  { label: t("status"), cell: statusBadge },
  { label: t("progress"), cell: (deletion) => element("span", { class: "progress" }, progressBar(deletion), " ", stepsText(deletion)) },
  { label: t("created"), cell: ({ created }) => timeOf(created) },
  { label: t("finished"), cell: ({ finished }) => timeOf(finished) },
  { label: t("failure"), cell: (deletion) => failureOf(deletion) ?? "" },
  { label: t("actions"), cell: (deletion) => element("div", { class: "actions" }, buttonsOf(deletion, refresh),
    linkTo({ view: "user", id: deletion.userId, ticket: deletion.ticket }, t("details"))) },
];

export function show(view, state) {
  const retryAll = element("div", { hidden: true });
  const load = async (current) => {
    const page = await listDeletions(current);
    // It is offered when something has failed, as far as this page shows.
    retryAll.hidden = !page.rows.some(({ status }) => status === "failed");
    return page;
  };
  const deletions = list({ label: t("section deletions"), state, columns, load });
  const retried = async ({ retried: count, more }) => {
    await deletions.refresh();
    notify(t(more ? "retriedSome" : "retried", { count }), "good");
  };
  retryAll.append(action(t("retryAll"), retryDeletions, retried));
  view.append(element("div", { class: "bar" }, sectionHeading("deletions"), retryAll), ...deletions.elements);
  return deletions.refresh;
}
