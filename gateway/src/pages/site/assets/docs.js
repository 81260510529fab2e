// The API documentation: Swagger UI, which sends requests with the token of a person who is signed in.

import { showFrame } from "./frame.js";
import { token } from "./session.js";

const dark = matchMedia("(prefers-color-scheme: dark)");
const showTheme = () => document.documentElement.classList.toggle("dark-mode", dark.matches);
dark.addEventListener("change", showTheme);
showTheme();
showFrame();

const viewer = globalThis.SwaggerUIBundle({
  url: "/openapi.json",
  dom_id: "#viewer",
  deepLinking: true,
  defaultModelsExpandDepth: 0,
  displayRequestDuration: true,
  // It would send the document to another server.
  validatorUrl: null,
  // There is one server: this one.
  plugins: [{ wrapComponents: { ServersContainer: () => () => null } }],
  onComplete: () => { if (token()) viewer.preauthorizeApiKey("bearer", token()); },
});
