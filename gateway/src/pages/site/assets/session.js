// What a tab remembers: the token of the user, the secrets of links that were opened in it, and drafts. A browser that stays
// signed in remembers who the user is, but no token: its session is in a cookie that scripts cannot read.

const TOKEN_KEY = "countersign-token";
/** What all tabs of a browser know that stays signed in: claims of the user's token, which decide what to show. */
const STAY_KEY = "countersign-stay";
/** The name of an exchange of the session whose response may have been lost. */
const ATTEMPT_KEY = "countersign-attempt";
const PROBE_KEY = "countersign-probe";
/** Stands for the token of a session that was not fetched yet. */
const OF_SESSION = "session";
const secretKey = (id) => `countersign-secret-${id}`;
const linkKey = (id) => `countersign-link-${id}`;
/** What the browser does not store, because it stores nothing or has no room. It is kept until the page is left. */
const unstored = new Map();

/** Runs what uses the browser's storage. Returns `otherwise` if the browser refuses. */
function attempt(work, otherwise, kind = "sessionStorage") {
  try {
    return work(globalThis[kind]) ?? otherwise;
  } catch {
    return otherwise;
  }
}

/** Texts that last as long as the tab, in a browser that stores them. */
export const storage = {
  get: (key) => unstored.get(key) ?? attempt((stored) => stored.getItem(key), null),
  set(key, value) {
    unstored.set(key, String(value));
    if (attempt((stored) => { stored.setItem(key, value); return true; }, false)) unstored.delete(key);
  },
  remove(key) {
    unstored.delete(key);
    attempt((stored) => stored.removeItem(key));
  },
  clear() {
    unstored.clear();
    attempt((stored) => stored.clear());
  },
  /** Whether a text outlasts the page. */
  keeps: (key) => !unstored.has(key),
};

/** What all tabs of the browser remember. */
const shared = {
  get: (key) => attempt((stored) => stored.getItem(key), null, "localStorage"),
  set: (key, value) => attempt((stored) => { stored.setItem(key, value); return true; }, false, "localStorage"),
  remove: (key) => attempt((stored) => stored.removeItem(key), null, "localStorage"),
};

/** The token of the session, which only the page has. */
let fetched = null;

/** The claims of the user whose session the browser has, or `null`. */
function stayingClaims() {
  try {
    return JSON.parse(shared.get(STAY_KEY))?.claims ?? null;
  } catch {
    return null;
  }
}

/** Whether the browser can stay signed in: only over TLS or on the developer's own machine, and if it stores something. */
export function canStay() {
  const canStore = globalThis.isSecureContext && shared.set(PROBE_KEY, "");
  shared.remove(PROBE_KEY);
  return canStore;
}
/** Whether the browser stays signed in. */
export const isStaying = () => stayingClaims() !== null;
/** Keeps the token of a session in memory, and lets the other tabs know whose it is. */
export function stay(value) {
  const { id, scope, emailVerified } = claimsOf(value);
  storage.remove(TOKEN_KEY);
  fetched = value;
  shared.set(STAY_KEY, JSON.stringify({ claims: { id, scope, emailVerified } }));
}
/** The token of the session, if it was fetched. */
export const fetchedToken = () => fetched;
/** Remembers that the session is to be ended, until the server has done so. */
export const leaveSession = () => shared.set(STAY_KEY, JSON.stringify({ leaving: true }));
export const isLeaving = () => !isStaying() && shared.get(STAY_KEY) !== null;
export const forgetSession = () => shared.remove(STAY_KEY);
/** A name that nothing else has. */
export const randomName = () => [...crypto.getRandomValues(new Uint8Array(16))].map((byte) => byte.toString(16).padStart(2, "0")).join("");
/** The name of an exchange. The same one is returned until a response to it has arrived. */
export function attemptName() {
  const known = shared.get(ATTEMPT_KEY);
  if (known) return known;
  const name = randomName();
  shared.set(ATTEMPT_KEY, name);
  return name;
}
export const forgetAttempt = () => shared.remove(ATTEMPT_KEY);

/** The token, or what stands for it: `call` takes both. Nothing if the person is not signed in. */
export const token = () => (isStaying() ? fetched ?? OF_SESSION : ownToken());
/** The token of this tab, which no other one has. */
const ownToken = () => storage.get(TOKEN_KEY);
/** Signs in with a token. A session that is to be ended still is. */
export function signIn(value) {
  if (isStaying()) forgetSession();
  fetched = null;
  storage.set(TOKEN_KEY, value);
}
/** Forgets a token that is no longer valid. */
export function signOut() {
  if (isStaying()) forgetSession();
  fetched = null;
  storage.remove(TOKEN_KEY);
}
/** Also forgets drafts and the secrets of links: the next person at this computer gets nothing. */
export function forgetEverything() {
  fetched = null;
  storage.clear();
}

// Another tab signed the person out: this one must not keep anything for the next person either.
addEventListener("storage", ({ key, newValue }) => {
  if (key !== STAY_KEY || !newValue || stayingClaims()) return;
  forgetEverything();
  location.assign("/");
});

/** The secret of a task. */
export const secretOf = (id) => storage.get(secretKey(id));
export const rememberSecret = (id, secret) => storage.set(secretKey(id), secret);
export const forgetSecret = (id) => storage.remove(secretKey(id));
/** Whether the secret is still there after the page was loaded again. */
export const keepsSecret = (id) => storage.keeps(secretKey(id));

/** The secret of the approver's link, for the creator, who is told it only once. Another approver has another one. */
export function approverLinkOf({ id, approver }) {
  // 0.3.0 remembered the secret alone.
  const [secret, of = approver] = (storage.get(linkKey(id)) ?? "").split(/ (.*)/s);
  return of === approver ? secret : null;
}
export const rememberApproverLink = ({ id, approver, approverSecret }) => storage.set(linkKey(id), `${approverSecret} ${approver}`);

/** The claims of a token, unchecked: only to choose what to show. */
export function claimsOf(value) {
  try {
    const payload = value.split(".")[1].replace(/-/g, "+").replace(/_/g, "/");
    return JSON.parse(new TextDecoder().decode(Uint8Array.from(atob(payload), (char) => char.charCodeAt(0))));
  } catch {
    return {};
  }
}

/** The claims of the user who is signed in. Those of a session may be few. */
export const claims = () => (isStaying() && !fetched ? stayingClaims() : claimsOf(token()));

const draftKey = (name) => `countersign-draft-${claims().id ?? ""}-${name}`;

/** What a person has written and not sent, for the name of a form. */
export function draftOf(name) {
  try {
    return JSON.parse(storage.get(draftKey(name)));
  } catch {
    return null;
  }
}
export const keepDraft = (name, draft) => storage.set(draftKey(name), JSON.stringify(draft));
export const dropDraft = (name) => storage.remove(draftKey(name));
