// The webhooks of a task, and how their deliveries went.

import { element, ignoreSecondPress, labelled, markInvalid, notify, withButtonsDisabled } from "./dom.js";
import { signInAgain } from "./frame.js";
import { createWebhook, deliveriesOf, redeliver, removeWebhook, testWebhook, webhooksOf } from "./task-api.js";
import { t } from "./texts.js";
import { exactTime, parseTime, timeFromNow } from "./times.js";

/** Says what failed. `say` says what is wrong with a field. */
const failed = (error, say = (text) => notify(text, "bad")) => (error.status === 401 ? signInAgain() : say(error.message));

/** A card that loads the webhooks when it is opened. */
export function webhooksCard(task) {
  const body = element("div", {});
  const title = element("h2", { tabindex: -1 }, t("webhooks"));
  /** `done` is the name of what a press did: its button is gone, and had the focus. */
  const reload = async (done) => {
    try {
      await show(body, task, reload);
      if (!done) return;
      notify(t(done), "good");
      title.focus({ preventScroll: true });
    } catch (error) {
      if (await failed(error)) await reload(done);
    }
  };
  const card = element("details", { class: "card" }, element("summary", {}, t("advanced")), title, body);
  card.addEventListener("toggle", () => { if (card.open) reload(); });
  return card;
}

async function show(body, task, reload) {
  const [hooks, deliveries] = await Promise.all([
    webhooksOf(task.id),
    // Only the creator and administrators may see these.
    deliveriesOf(task.id).catch((error) => (error.status === 403 ? [] : Promise.reject(error))),
  ]);
  const rows = hooks.map((hook) => hookRow(hook, deliveries.filter(({ webhookId }) => webhookId === hook.id), reload));
  body.replaceChildren(
    rows.length > 0 ? element("ul", { class: "hooks" }, rows) : element("p", { class: "soft" }, t("noWebhooks")),
    ...(task.status === "pending" ? [addForm(task, reload)] : []));
  ignoreSecondPress(body);
}

function action(text, work, done) {
  const press = () => withButtonsDisabled(button.parentElement, () => work().then(done, failed));
  const button = element("button", { type: "button", class: "plain", onclick: press }, t(text));
  return button;
}

function hookRow(hook, deliveries, reload) {
  return element("li", {},
    element("code", {}, hook.url), " ",
    element("span", { class: `status ${hook.status}` }, t(`webhook ${hook.status}`)),
    ...deliveries.map((delivery) => deliveryRow(delivery, reload)),
    optionDetails(hook),
    testDetails(hook),
    element("div", { class: "actions" }, action("remove", () => removeWebhook(hook.id), () => reload("webhookRemoved"))));
}

/** What is special about the calls, if anything is. Of headers, only the names are known. */
function optionDetails({ events, include, method, headers, body, success }) {
  const options = { events, include, method, headers, body, success };
  if (Object.values(options).every((option) => option === undefined)) return null;
  return element("details", {}, element("summary", {}, t("callOptions")),
    element("pre", { dir: "ltr", lang: "en", tabindex: "0" }, JSON.stringify(options, null, 2)));
}

/** A button that tries the webhook, behind what the receiver may do then. */
function testDetails(hook) {
  const result = element("p", { role: "status" });
  const shown = ({ success, statusCode, durationMs, error }) => [
    element("span", { class: `status ${success ? "sent" : "fail"}` }, t(success ? "testSucceeded" : "testFailed")), " ",
    element("span", { dir: "auto", lang: "en" }, [statusCode, `${durationMs} ms`, error].filter(Boolean).join(" · ")),
  ];
  const press = () => withButtonsDisabled(details, async () => {
    result.replaceChildren();
    try {
      result.replaceChildren(...shown(await testWebhook(hook.id)));
    } catch (error) {
      await failed(error);
    }
  });
  const details = element("details", {}, element("summary", {}, t("sendTest")), element("p", { class: "soft small" }, t("sendTestHelp")),
    element("div", { class: "actions" }, element("button", { type: "button", class: "plain", onclick: press }, t("sendTestNow"))), result);
  return details;
}

/** A delivery by its event, and when that was: how it went, and a button that sends it again. */
function deliveryRow(delivery, reload) {
  const { id, taskStatus, created, status, suspended } = delivery;
  const name = `delivery-${id}`;
  return element("div", { role: "group", "aria-labelledby": name },
    element("span", { id: name }, t(`decided ${taskStatus}`), " · ", exactTime(parseTime(created))), " ",
    element("span", { class: `status ${status}` }, t(`webhook ${status}`)),
    suspended ? element("p", { class: "soft" }, t("suspended")) : null,
    deliveryDetails(delivery),
    element("div", { class: "actions" }, action("sendAgain", () => redeliver(id), () => reload("isSentAgain"))));
}

function deliveryDetails({ attempts, nextAttempt, suspended }) {
  const next = parseTime(nextAttempt);
  const result = ({ statusCode, error, response }) => [statusCode, error, response].filter(Boolean).join(" · ");
  return element("details", {},
    element("summary", {}, t("attempts", { count: attempts.length })),
    element("ol", {}, attempts.map((attempt) => element("li", {},
      exactTime(parseTime(attempt.at)), ` · ${attempt.durationMs} ms · `, element("span", { dir: "auto", lang: "en" }, result(attempt))))),
    next && !suspended ? element("p", { class: "soft" }, t("nextAttempt"), " ", timeFromNow(next)) : null);
}

function addForm(task, reload) {
  const url = element("input", { id: "webhook-url", type: "url", required: true, inputmode: "url", autocomplete: "off" });
  const submit = (event) => {
    event.preventDefault();
    markInvalid(url, "");
    withButtonsDisabled(form, async () => {
      try {
        await createWebhook({ taskId: task.id, url: url.value });
        form.reset();
        await reload("webhookAdded");
      } catch (error) {
        await failed(error, (text) => markInvalid(url, text));
      }
    });
  };
  const form = element("form", { onsubmit: submit }, labelled(t("webhookUrl"), url, t("webhookHelp")),
    element("div", { class: "actions" }, element("button", { class: "plain" }, t("add"))));
  return form;
}
