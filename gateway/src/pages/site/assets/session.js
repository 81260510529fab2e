// What a tab remembers: the token of the user, the secrets of links that were opened in it, and drafts.

const TOKEN_KEY = "countersign-token";
const secretKey = (id) => `countersign-secret-${id}`;
const linkKey = (id) => `countersign-link-${id}`;
/** What the browser does not store, because it stores nothing or has no room. It is kept until the page is left. */
const unstored = new Map();

/** Runs what uses the browser's storage. Returns `otherwise` if the browser refuses. */
function attempt(work, otherwise) {
  try {
    return work(sessionStorage) ?? otherwise;
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

export const token = () => storage.get(TOKEN_KEY);
export const signIn = (value) => storage.set(TOKEN_KEY, value);
/** Forgets a token that is no longer valid. */
export const signOut = () => storage.remove(TOKEN_KEY);
/** Also forgets drafts and the secrets of links: the next person at this computer gets nothing. */
export const forgetEverything = () => storage.clear();

/** The secret of a task. The empty id stands for the task of a link that does not name it. */
export const secretOf = (id) => storage.get(secretKey(id));
export const rememberSecret = (id, secret) => storage.set(secretKey(id), secret);
export const forgetSecret = (id) => storage.remove(secretKey(id));
/** Whether the secret is still there after the page was loaded again. */
export const keepsSecret = (id) => storage.keeps(secretKey(id));

/** The secret of the approver's link, for the creator, who is told it only once. */
export const approverLinkOf = (id) => storage.get(linkKey(id));
export const rememberApproverLink = (id, secret) => storage.set(linkKey(id), secret);
export const forgetApproverLink = (id) => storage.remove(linkKey(id));

/** The claims of the token, unchecked: only to choose what to show. */
export function claims() {
  try {
    const payload = token().split(".")[1].replace(/-/g, "+").replace(/_/g, "/");
    return JSON.parse(new TextDecoder().decode(Uint8Array.from(atob(payload), (char) => char.charCodeAt(0))));
  } catch {
    return {};
  }
}

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
