// The API documentation: Swagger UI, which sends requests with the token of a person who is signed in.

import { showFrame } from "./frame.js";
import { token } from "./session.js";
import { bearer } from "./stay.js";

const dark = matchMedia("(prefers-color-scheme: dark)");
const showTheme = () => document.documentElement.classList.toggle("dark-mode", dark.matches);
dark.addEventListener("change", showTheme);
showTheme();
showFrame();

const given = token();
const FIRST = ["people-task", "users"];
const place = (tag) => (FIRST.includes(tag) ? FIRST.indexOf(tag) : FIRST.length);

/** Operations on tasks come first, and those of administrators last. */
const rank = (operation) => {
  const [path, description] = [operation.get("path"), operation.getIn(["operation", "description"]) ?? ""];
  if (/^\/(?:users|audit)\b/.test(path) || description.includes("For administrators")) return 2;
  return path.startsWith("/people-task/tasks") ? 0 : 1;
};

const MASKS = { authorization: "Bearer $TOKEN", "x-task-secret": "$SECRET" };
const SECRET_VALUES = /("\w*(?:password|secret|code|token)"\s*:\s*)"(?:[^"\\]|\\.)*"/gi;

/** A request as it is shown, without what the person must keep: a picture of the page would give it away. */
const masked = (request) => request
  ?.update("headers", (headers) => headers?.map((value, name) => MASKS[name.toLowerCase()] ?? value))
  .update("url", (url) => url?.replace(/([?&](?:secret|code|token)=)[^&#]*/gi, "$1…"))
  .update("body", (body) => (typeof body === "string" ? body.replace(SECRET_VALUES, '$1"…"') : body));

// There is one server: this one.
const viewer = globalThis.SwaggerUIBundle({
  url: "/openapi.json",
  dom_id: "#viewer",
  deepLinking: true,
  defaultModelsExpandDepth: 0,
  displayRequestDuration: true,
  // It would send the document to another server.
  validatorUrl: null,
  // What most people came for is first.
  tagsSorter: (a, b) => place(a) - place(b) || a.localeCompare(b),
  operationsSorter: (a, b) => rank(a) - rank(b),
  plugins: [{
    wrapComponents: { ServersContainer: () => () => null },
    statePlugins: { spec: { wrapSelectors: { mutatedRequestFor: (sent) => (_, ...of) => masked(sent(...of)) } } },
  }],
  onComplete: () => { if (given) viewer.preauthorizeApiKey("bearer", given); },
  // What stands for the token of a session is replaced by a token that has not expired.
  async requestInterceptor(request) {
    if (given && request.headers?.Authorization === `Bearer ${given}`) request.headers.Authorization = `Bearer ${await bearer(given)}`;
    return request;
  },
});
