// What the pages share: elements, notices, calls of the API.

export const $ = (id) => document.getElementById(id);

/** An element with attributes and children; texts become text nodes, never markup. */
export function element(name, attributes = {}, ...children) {
  const made = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) {
    if (key.startsWith("on")) made.addEventListener(key.slice(2), value);
    else if (value === true) made.setAttribute(key, "");
    else if (value !== false && value !== undefined && value !== null) made.setAttribute(key, value);
  }
  made.append(...children.flat().filter((child) => child !== null && child !== undefined));
  return made;
}

/** Shows a sentence in the page's notice; `kind` is `good`, `bad` or nothing. */
export function say(text, kind = "") {
  const state = $("state");
  state.textContent = text;
  state.className = `notice ${kind}`;
  state.hidden = text === "";
  if (kind === "bad") state.scrollIntoView({ block: "nearest" });
}

/** Calls the API. Throws an Error whose message is meant for people and which carries the problem's fields. */
export async function call(method, path, { token, secret, body } = {}) {
  const headers = { Accept: "application/json" };
  if (token) headers.Authorization = `Bearer ${token}`;
  if (secret) headers["X-Task-Secret"] = secret;
  if (body !== undefined) headers["Content-Type"] = "application/json";
  let response;
  try {
    response = await fetch(path, {
      method, headers, credentials: "omit", cache: "no-store",
      body: body === undefined ? undefined : JSON.stringify(body),
    });
  } catch {
    throw new Error("The server cannot be reached. Check your connection and try again.");
  }
  const answer = await response.json().catch(() => ({}));
  if (response.ok) return answer;
  const reasons = (answer.errors ?? []).map((error) => error.message);
  const text = reasons.length > 0 ? reasons.join(" ") : answer.detail ?? `The server answered ${response.status}.`;
  throw Object.assign(new Error(text), { status: response.status, code: answer.code, problem: answer });
}

/** What the address gives under a name, in its fragment or in its query. */
export function given(name) {
  const [fragment, query] = [location.hash.slice(1), location.search].map((part) => new URLSearchParams(part));
  return fragment.get(name) ?? query.get(name);
}

/** Loads the page anew for another link that is opened in its tab: a new fragment alone loads nothing. */
export function followLinks() {
  addEventListener("hashchange", () => location.reload());
}

/** The field for a code, filled with the link's and then hidden. */
export function codeFromLink() {
  const field = $("code");
  if (given("code")) {
    field.value = given("code");
    $("code-field").hidden = true;
    // The code shall not stay in the history or in a screenshot of the address bar.
    history.replaceState(null, "", location.pathname);
  }
  followLinks();
  return field;
}

/** Runs `work` while the buttons of `form` are off, so that nothing is sent twice. */
export async function busy(form, work) {
  const buttons = [...form.querySelectorAll("button")];
  for (const button of buttons) button.disabled = true;
  try {
    await work();
  } finally {
    for (const button of buttons) button.disabled = false;
  }
}
