// The user who is signed in, as the service knows them.

import { call } from "./api.js";
import { claims, token } from "./session.js";

let asked = {};

/** The user of the token. It is asked for once. */
export function currentUser() {
  const current = token();
  if (asked.token !== current) {
    const user = call("GET", "/user", { token: current });
    asked = { token: current, user };
    // After a failure, the next caller asks again.
    user.catch(() => { asked = {}; });
  }
  return asked.user;
}

export const isAdmin = (user) => user.scope.includes("admin");

/** Whether the service says that the user is an administrator. It is not asked if the token cannot be one's. */
export async function knowsAdmin() {
  if (!claims().scope?.includes("admin")) return false;
  return currentUser().then(isAdmin, () => false);
}
