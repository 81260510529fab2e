// Shared by the pages: elements, notices, API calls.

export const $ = (id) => document.getElementById(id);

/** An element with attributes and children. Strings become text nodes, never markup. */
export function element(name, attributes = {}, ...children) {
  const created = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) {
    if (key.startsWith("on")) created.addEventListener(key.slice(2), value);
    else if (value === true) created.setAttribute(key, "");
    else if (value !== false && value !== undefined && value !== null) created.setAttribute(key, value);
  }
  created.append(...children.flat().filter((child) => child !== null && child !== undefined));
  return created;
}

/** Shows a text in the page's notice. `kind` is `good`, `bad` or empty. */
export function notify(text, kind = "") {
  const state = $("state");
  state.textContent = text;
  state.className = `notice ${kind}`;
  state.hidden = text === "";
  if (kind === "bad") state.scrollIntoView({ block: "nearest" });
}

/** Calls the API. Throws an Error with a message for the user and the fields of the problem. */
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
  const result = await response.json().catch(() => ({}));
  if (response.ok) return result;
  const reasons = (result.errors ?? []).map((error) => error.message);
  const text = reasons.length > 0 ? reasons.join(" ") : result.detail ?? `The server responded with status ${response.status}.`;
  throw Object.assign(new Error(text), { status: response.status, code: result.code, problem: result });
}

/** A parameter of the URL, from its fragment or its query. */
export function urlParameter(name) {
  const [fragment, query] = [location.hash.slice(1), location.search].map((part) => new URLSearchParams(part));
  return fragment.get(name) ?? query.get(name);
}

/** Reloads the page when another link is opened in its tab: a new fragment alone does not. */
export function reloadOnNewLink() {
  addEventListener("hashchange", () => location.reload());
}

/** The field for a code. If the link has a code, the field is filled in and hidden. */
export function codeFromLink() {
  const field = $("code");
  if (urlParameter("code")) {
    field.value = urlParameter("code");
    $("code-field").hidden = true;
    // Keeps the code out of the history and of screenshots of the address bar.
    history.replaceState(null, "", location.pathname);
  }
  reloadOnNewLink();
  return field;
}

/** Runs `work` while the buttons of `form` are disabled, so that nothing is sent twice. */
export async function withButtonsDisabled(form, work) {
  const buttons = [...form.querySelectorAll("button")];
  for (const button of buttons) button.disabled = true;
  try {
    await work();
  } finally {
    for (const button of buttons) button.disabled = false;
  }
}
