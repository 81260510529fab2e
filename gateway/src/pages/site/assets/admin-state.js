// The state of the page of administrators, which is in the URL, and what its views may ask of the page.

/** How the page shows the state of the URL, and how it reports a failed call. */
let page = {};
export const connect = (functions) => { page = functions; };

/** The URL of a state, without what is empty. */
export function urlOf(state) {
  const given = Object.entries(state).filter(([name, value]) => value && !(name === "view" && value === "users"));
  const query = String(new URLSearchParams(given));
  return query ? `/admin?${query}` : "/admin";
}

/** Shows another state. `mode` is what happens to the browser's history. */
export function go(state, mode = "pushState") {
  history[mode](null, "", urlOf(state));
  return page.show(mode === "pushState");
}

/** Changes the parameters of the shown view without rendering its controls again. */
export function change(state) {
  history.replaceState(null, "", urlOf(state));
}

/** Reports a failed call. */
export const failed = (error) => page.failed(error);
