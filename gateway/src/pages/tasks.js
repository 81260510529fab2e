import { $, call, element, notify, reloadOnNewLink, urlParameter, withButtonsDisabled } from "/assets/page.js";

const TOKEN_KEY = "countersign-token";
const link = { id: urlParameter("id"), secret: urlParameter("secret") };
const secretKey = `countersign-secret-${link.id}`;
if (link.secret) {
  // Keeps the secret out of the history and of screenshots of the address bar, but it survives a reload.
  sessionStorage.setItem(secretKey, link.secret);
  history.replaceState(null, "", `${location.pathname}?${new URLSearchParams({ id: link.id ?? "" })}`);
} else if (link.id) {
  link.secret = sessionStorage.getItem(secretKey);
}
reloadOnNewLink();

const access = () => (link.secret ? { secret: link.secret } : { token: sessionStorage.getItem(TOKEN_KEY) });
const path = (id) => `/people-task/tasks/${encodeURIComponent(id)}`;

/** A task with its buttons. Only a click makes a decision. `heading` is `h1`, or `h2` in a list. */
function card(task, canDecide, heading) {
  const fact = (name, value) => (value ? [element("dt", {}, name), element("dd", {}, value)] : []);
  const article = element("article", { class: "card" },
    element(heading, {}, task.title),
    task.description ? element("p", { class: "description" }, task.description) : null,
    element("dl", { class: "facts" },
      fact("Requested by", task.requester), fact("Approver", task.approver),
      fact("Due", task.decisionBy ? `${task.decisionBy} UTC` : null),
      element("dt", {}, "Status"), element("dd", { class: `status ${task.status}` }, task.status)));
  if (task.status === "pending" && canDecide) {
    const button = (name, verb, kind) => element("button",
      { type: "button", class: kind, onclick: () => decide(article, task, verb, heading) }, name);
    article.append(element("div", { class: "actions" },
      button("Approve", "approve", ""), button("Reject", "reject", "reject")));
  }
  return article;
}

function decide(article, task, verb, heading) {
  withButtonsDisabled(article, async () => {
    try {
      const decided = await call("PUT", `${path(task.id)}/${verb}`, access());
      article.replaceWith(card(decided, false, heading));
      notify(`“${decided.title}” is ${decided.status}.`, "good");
    } catch (error) {
      notify(error.code === "task-already-resolved"
        ? `This task was already ${error.problem.taskStatus ?? "decided"}.` : error.message, "bad");
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
      tasks.length === 0 ? element("p", {}, "You have no pending tasks.") : "",
      ...tasks.map((task) => card(task, true, "h2")));
  } catch (error) {
    showError(error);
  }
}

function showError(error) {
  if (error.status === 401 && !link.secret) {
    sessionStorage.removeItem(TOKEN_KEY);
    $("sign-in").hidden = false;
    $("session").hidden = true;
    notify("Your session has ended. Sign in again.");
  } else if (error.status === 404) {
    notify("This task does not exist, or the link is no longer valid.", "bad");
  } else {
    notify(error.message, "bad");
  }
}

$("sign-in").addEventListener("submit", (event) => {
  event.preventDefault();
  withButtonsDisabled(event.target, async () => {
    const body = { username: $("username").value.trim(), password: $("password").value };
    try {
      const { token } = await call("POST", "/user/auth", { body });
      sessionStorage.setItem(TOKEN_KEY, token);
      $("password").value = "";
      notify("");
      await show();
    } catch (error) {
      notify(error.status === 401 || error.status === 403 ? "Incorrect e-mail address or password." : error.message, "bad");
    }
  });
});

$("reload").addEventListener("click", () => { notify(""); show(); });
$("sign-out").addEventListener("click", () => { sessionStorage.removeItem(TOKEN_KEY); notify(""); show(); });
show();
