// A browser that stays signed in. Each page exchanges the session for a token of its own, which is valid for five minutes and
// only in memory.

import { Failure, request } from "./http.js";
import { attemptName, claims, claimsOf, fetchedToken, forgetAttempt, forgetSession, isLeaving, isStaying, leaveSession, signIn, signOut, stay } from "./session.js";
import { t } from "./texts.js";

/** A token is replaced before it expires. */
const FRESH = 240_000;
const BUSY_PAUSE = 300;

/** Whose page this is. */
let user = claims().id;
let underWay = null;
let fetchedAt = 0;

/** Runs what changes the cookie while no other tab does: each value of it is good for one exchange. */
const alone = (work) => (navigator.locks ? navigator.locks.request("countersign-session", work) : work());

const pause = (milliseconds) => new Promise((resolve) => { setTimeout(resolve, milliseconds); });

/** The token to send for what `token()` returned. */
export async function bearer(given) {
  if (!isStaying()) return given;
  const isFresh = fetchedToken() && performance.now() - fetchedAt < FRESH;
  return isFresh ? fetchedToken() : exchange(fetchedToken());
}

/** Exchanges the session for a token, unless another call already got one in place of `old`. Throws a `Failure`. */
export function exchange(old) {
  if (old !== fetchedToken()) return Promise.resolve(fetchedToken());
  underWay ??= alone(fetchToken).finally(() => { underWay = null; });
  return underWay;
}

async function fetchToken() {
  for (let tries = 1; ; tries += 1) {
    // Another tab may have ended it.
    if (!isStaying()) throw new Failure(t("sessionEnded"), { status: 401 });
    try {
      const { data } = await request("POST", "/session/token", { session: true, body: { attempt: attemptName() } });
      forgetAttempt();
      return take(data.token);
    } catch (error) {
      if (error.status === 401) {
        forgetAttempt();
        signOut();
      }
      if (error.code !== "session-busy" || tries === 3) throw error;
      await pause(BUSY_PAUSE * tries);
    }
  }
}

function take(token) {
  const { id } = claimsOf(token);
  user ??= id;
  if (id === user) {
    fetchedAt = performance.now();
    stay(token);
    return token;
  }
  // Another tab signed another person in. What this page shows is not theirs, and until it is loaded again, it sends nothing.
  location.reload();
  return new Promise(() => {});
}

/** Signs in with a token that is only for this tab. A session that another tab has begun meanwhile is to be ended. */
export function signInHere(token) {
  const wasStaying = isStaying();
  user = claimsOf(token).id;
  // Of the same person, this tab uses it.
  if (wasStaying && claims()?.id === user) return;
  signIn(token);
  if (wasStaying) leaveSession();
}

/** Signs in, and stays signed in. Throws a `Failure`. */
export function signInAndStay(credentials) {
  return alone(async () => {
    const { data } = await request("POST", "/session", { session: true, body: credentials });
    forgetAttempt();
    fetchedAt = performance.now();
    user = claimsOf(data.token).id;
    stay(data.token);
  });
}

/** Ends the session of the browser, if it has one. Without a connection, the next page does so. */
export async function endSession() {
  if (isStaying()) leaveSession();
  if (isLeaving()) await alone(finishLeaving).catch(() => {});
}

async function finishLeaving() {
  // Another tab may have begun a session while this one waited.
  if (!isLeaving()) return;
  await request("DELETE", "/session", { session: true });
  forgetAttempt();
  if (isLeaving()) forgetSession();
}
