import { $, busy, call, element, followLinks, given, say } from "/assets/page.js";

const KEY = "countersign-token";
const link = { id: given("id"), secret: given("secret") };
const kept = `countersign-secret-${link.id}`;
if (link.secret) {
  // The secret shall not stay in the history or in a screenshot of the address bar, but survive a reload.
  sessionStorage.setItem(kept, link.secret);
  history.replaceState(null, "", `${location.pathname}?${new URLSearchParams({ id: link.id ?? "" })}`);
} else if (link.id) {
  link.secret = sessionStorage.getItem(kept);
}
followLinks();

const access = () => (link.secret ? { secret: link.secret } : { token: sessionStorage.getItem(KEY) });
const path = (id) => `/people-task/tasks/${encodeURIComponent(id)}`;

/** A task with its buttons; a decision is only ever made by a click. `heading` is `h1`, or `h2` in a list. */
function card(task, decides, heading) {
  const fact = (name, value) => (value ? [element("dt", {}, name), element("dd", {}, value)] : []);
  const shown = element("article", { class: "card" },
    element(heading, {}, task.title),
    task.description ? element("p", { class: "description" }, task.description) : null,
    element("dl", { class: "facts" },
      fact("Asked by", task.requester), fact("Approver", task.approver),
      fact("Due", task.decisionBy ? `${task.decisionBy} UTC` : null),
      element("dt", {}, "Status"), element("dd", { class: `status ${task.status}` }, task.status)));
  if (task.status === "pending" && decides) {
    const button = (name, verb, kind) => element("button",
      { type: "button", class: kind, onclick: () => decide(shown, task, verb, heading) }, name);
    shown.append(element("div", { class: "actions" },
      button("Approve", "approve", ""), button("Reject", "reject", "reject")));
  }
  return shown;
}

function decide(shown, task, verb, heading) {
  busy(shown, async () => {
    try {
      const decided = await call("PUT", `${path(task.id)}/${verb}`, access());
      shown.replaceWith(card(decided, false, heading));
      say(`“${decided.title}” is ${decided.status}.`, "good");
    } catch (error) {
      say(error.code === "task-already-resolved"
        ? `Too late: it was ${error.problem.taskStatus ?? "decided"} already.` : error.message, "bad");
      if (error.status === 409) await show();
    }
  });
}

async function show() {
  const { token, secret } = access();
  $("sign-in").hidden = Boolean(token || secret);
  $("session").hidden = !token;
  $("tasks").replaceChildren();
  if (!token && !secret) return;
  try {
    if (link.id) {
      const task = await call("GET", `${path(link.id)}?include=isApprover`, access());
      $("tasks").replaceChildren(card(task, task.isApprover !== false, "h1"));
      return;
    }
    const tasks = await call("GET", "/people-task/tasks?role=approver&filter=status:pending&limit=100", access());
    $("tasks").replaceChildren(element("h1", {}, "Your tasks"),
      tasks.length === 0 ? element("p", {}, "Nothing waits for your decision.") : "",
      ...tasks.map((task) => card(task, true, "h2")));
  } catch (error) {
    failed(error);
  }
}

function failed(error) {
  if (error.status === 401 && !link.secret) {
    sessionStorage.removeItem(KEY);
    $("sign-in").hidden = false;
    $("session").hidden = true;
    say("Your session has ended. Sign in again.");
  } else if (error.status === 404) {
    say("There is no such task, or this link no longer opens it.", "bad");
  } else {
    say(error.message, "bad");
  }
}

$("sign-in").addEventListener("submit", (event) => {
  event.preventDefault();
  busy(event.target, async () => {
    const body = { username: $("username").value.trim(), password: $("password").value };
    try {
      const { token } = await call("POST", "/user/auth", { body });
      sessionStorage.setItem(KEY, token);
      $("password").value = "";
      say("");
      await show();
    } catch (error) {
      say(error.status === 401 || error.status === 403 ? "That e-mail address and password do not belong together." : error.message, "bad");
    }
  });
});

$("reload").addEventListener("click", () => { say(""); show(); });
$("sign-out").addEventListener("click", () => { sessionStorage.removeItem(KEY); say(""); show(); });
show();
