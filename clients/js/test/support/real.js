// Users and keys of a real server, which COUNTERSIGN_URL names.
import { randomBytes } from "node:crypto";

export const url = process.env.COUNTERSIGN_URL;

/** Why tests with a real server are skipped; false if there is one. */
export const skip = !url && "COUNTERSIGN_URL does not name a server";

const unique = randomBytes(6).toString("hex");

/** Sends a call without the client. */
export async function call(method, path, { body, token } = {}) {
  const headers = { "content-type": "application/json", ...(token && { authorization: `Bearer ${token}` }) };
  const signal = AbortSignal.timeout(20_000);
  const response = await fetch(url + path, { method, headers, signal, ...(body && { body: JSON.stringify(body) }) });
  const answer = await response.json();
  if (!response.ok) throw new Error(`${method} ${path}: ${response.status} ${answer.code} ${answer.detail}`);
  return answer;
}

/** A new user with a key that has these scopes. */
export async function newUser(name, scopes = ["tasks:read", "tasks:write", "tasks:decide", "users:read"]) {
  const email = `${name}.${unique}@example.com`;
  const { token } = await call("POST", "/user", { body: { email, password: `correct horse ${unique}` } });
  const newKey = async (scopes) => call("POST", "/user/keys", { token, body: { name: `Test ${name}`, scopes } });
  return { email, token, newKey, ...(await newKey(scopes)), unique };
}

/** Resolves when the condition holds. */
export async function until(condition, what, seconds = 30) {
  for (const end = Date.now() + seconds * 1000; Date.now() < end; ) {
    if (await condition()) return;
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
  throw new Error(`${what} did not come true within ${seconds} s`);
}
