// The script of the pages that messages about an account lead to, and of addresses that do not exist: browsers load what they
// share once, and what the page of one address does beside it.

import { notLoaded } from "./dom.js";
import { showFrame } from "./frame.js";

const { pathname } = location;
const page = pathname.startsWith("/verify-email") ? import("./verify-email.js")
  : pathname.startsWith("/reset-password") ? import("./reset-password.js") : import("./not-found.js");
page.catch(() => {
  showFrame();
  notLoaded();
});
