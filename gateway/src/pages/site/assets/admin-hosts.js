// The hosts of webhooks: how many deliveries wait and have failed, and pausing them.

import { listHosts, pauseHost, resumeHost, sendFailed } from "./admin-api.js";
import { action, badge, choiceFilter, confirm, linkTo, list, relativeTime, sectionHeading } from "./admin-list.js";
import { element, foreign, notify } from "./dom.js";
import { locale, t, tWith } from "./texts.js";

const number = new Intl.NumberFormat(locale);
/** Numbers of deliveries are counted up to this one. */
const MAX_COUNTED = 1_000;
export const countOf = (count) => (count >= MAX_COUNTED ? `≥ ${number.format(count)}` : number.format(count));

/** Whether the deliveries to a host are paused, and since when. */
export const hostState = ({ paused, retrying }) => {
  if (paused) return element("span", {}, badge(t("paused"), "wait"), " ", element("span", { class: "soft" }, relativeTime(paused)));
  return retrying > 0 ? badge(t("failing"), "bad") : badge(t("running"), "good");
};

/** When the next delivery is tried. One that is suspended is not, and to a paused host none is. */
export const nextAttemptOf = ({ suspended, paused, nextAttempt }) => {
  if (suspended) return t("suspended");
  return paused ? "–" : relativeTime(nextAttempt);
};

/** The button that pauses a host, or resumes it. */
export function pauseButton({ host, paused }, done) {
  if (paused) {
    return action(t("resume"), () => resumeHost(host), async () => {
      await done();
      notify(tWith("resumed", { host: foreign(host) }), "good");
    });
  }
  const pause = async () => await confirm(t("pause"), tWith("pauseText", { host: foreign(host) }), t("pause")) && pauseHost(host);
  return action(t("pause"), pause, async () => {
    await done();
    notify(tWith("pausedHost", { host: foreign(host) }), "good");
  });
}

/** Says how many deliveries of a host were changed, and how many are left. */
export const notifyChanged = (key, { count, left }) =>
  left > 0 ? notify(`${t(key, { count })} ${t("deliveriesLeft", { count: left })}`) : notify(t(key, { count }), "good");

/** The button that sends all failed deliveries of a host again. */
export function sendFailedButton({ host }, done) {
  const send = async () => {
    const isSure = await confirm(t("sendFailed"), tWith("sendFailedText", { host: foreign(host) }), t("sendFailed"));
    return isSure && sendFailed(host);
  };
  return action(t("sendFailed"), send, async (result) => {
    await done();
    notifyChanged("sentAgain", result);
  });
}

const columns = (refresh) => [
  { label: t("host"), cell: ({ host }) => linkTo({ view: "deliveries", host }, foreign(host)) },
  { label: t("state"), cell: hostState },
  { label: t("pendingNumber"), cell: ({ pending }) => countOf(pending) },
  { label: t("retryingNumber"), cell: ({ retrying }) => countOf(retrying) },
  { label: t("failedNumber"), cell: ({ failed }) => countOf(failed) },
  { label: t("nextAttempt"), cell: nextAttemptOf },
  { label: t("actions"), cell: (host) => element("div", { class: "actions" },
    pauseButton(host, refresh), host.failed > 0 ? sendFailedButton(host, refresh) : null) },
];

export function show(view, state) {
  const hosts = list({
    label: t("section hosts"), state, columns, load: listHosts, position: "after",
    filters: [choiceFilter("status", ["", "pending", "fail", "paused"].map((status) => [status, t(`hosts ${status || "all"}`)]))],
  });
  view.append(sectionHeading("hosts"), element("p", {}, linkTo({ view: "deliveries" }, t("allDeliveries"))), ...hosts.elements);
  return hosts.refresh;
}
