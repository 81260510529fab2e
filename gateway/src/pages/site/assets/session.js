// What a tab remembers: the token of the user, and the secrets of links that were opened in it.

const TOKEN_KEY = "countersign-token";
const secretKey = (id) => `countersign-secret-${id}`;

export const token = () => sessionStorage.getItem(TOKEN_KEY);
export const signIn = (value) => sessionStorage.setItem(TOKEN_KEY, value);
/** Forgets a token that is no longer valid. */
export const signOut = () => sessionStorage.removeItem(TOKEN_KEY);
/** Also forgets the secrets of links: the next person at this computer gets nothing. */
export const forgetEverything = () => sessionStorage.clear();

/** The secret of a task. The empty id stands for the task of a link that does not name it. */
export const secretOf = (id) => sessionStorage.getItem(secretKey(id));
export const rememberSecret = (id, secret) => sessionStorage.setItem(secretKey(id), secret);
export const forgetSecret = (id) => sessionStorage.removeItem(secretKey(id));

/** The claims of the token, unchecked: only to choose what to show. */
export function claims() {
  try {
    const payload = token().split(".")[1].replaceAll("-", "+").replaceAll("_", "/");
    return JSON.parse(new TextDecoder().decode(Uint8Array.from(atob(payload), (char) => char.charCodeAt(0))));
  } catch {
    return {};
  }
}
