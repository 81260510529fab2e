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

/** The example of a request without the token of the person: a picture of the page would give it away. */
const withoutToken = (Curl, { React }) => ({ request, ...others }) => {
  const masked = request.updateIn(["headers", "Authorization"], (value) => (value ? "Bearer $TOKEN" : value));
  return React.createElement(Curl, { ...others, request: masked });
};

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
  plugins: [{ wrapComponents: { ServersContainer: () => () => null, curl: withoutToken } }],
  onComplete: () => { if (given) viewer.preauthorizeApiKey("bearer", given); },
  // What stands for the token of a session is replaced by a token that has not expired.
  async requestInterceptor(request) {
    if (given && request.headers?.Authorization === `Bearer ${given}`) request.headers.Authorization = `Bearer ${await bearer(given)}`;
    return request;
  },
});
