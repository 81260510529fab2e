// Calls of the API.

import { request } from "./http.js";
import { isStaying } from "./session.js";
import { bearer, exchange } from "./stay.js";

/** The highest offset that lists take. */
const MAX_OFFSET = 10_000_000;

/** Sends a request with the user's token, which may have to be fetched first, or again. */
async function send(method, path, options = {}) {
  if (!options.token) return request(method, path, options);
  const token = await bearer(options.token);
  try {
    return await request(method, path, { ...options, token });
  } catch (error) {
    if (error.status !== 401 || !isStaying()) throw error;
    return request(method, path, { ...options, token: await exchange(token) });
  }
}

/** Calls the API. `version` is that of the task to which the call applies. Throws a `Failure`. */
export async function call(method, path, options) {
  return (await send(method, path, options)).data;
}

/** A page of a list: its rows, and the URL of the next page or `null`. */
export async function listPage(path, options) {
  const { data, next } = await send("GET", path, options);
  return { rows: data, next };
}

/** The offset that a part of a URL names, as far as lists take it. */
export const offsetOf = (text) => Math.min(Math.max(0, Number.parseInt(text, 10) || 0), MAX_OFFSET);
