// The page for an address that does not exist.

import { $, element } from "./dom.js";
import { showFrame } from "./frame.js";
import { readLink } from "./link.js";
import { token } from "./session.js";
import { t } from "./texts.js";

const address = location.pathname + location.search + location.hash;
const { id, secret, isHalf } = readLink(address);
/** A page of ours whose address was written in capitals, or that something follows. */
const near = location.pathname.match(/^\/+(tasks|account|sessions|keys|admin|docs|reset-password|verify-email)\b/i)?.[1].toLowerCase();
/** The page of a link in a message, which reads the link from its own fragment. */
const ofLink = near?.includes("-") ? near : id || secret || isHalf ? "tasks" : null;

if (ofLink) {
  location.replace(`/${ofLink}#${encodeURIComponent(address)}`);
} else if (near) {
  location.replace(`/${near}${location.search}${location.hash}`);
} else {
  showFrame();
  document.title = t("noSuchPage");
  $("content").replaceChildren(element("section", { class: "card narrow" },
    element("h1", {}, t("noSuchPage")), element("p", {}, t("noSuchPageHelp")),
    element("div", { class: "actions" }, element("a", { href: "/", class: "button plain" }, t(token() ? "yourTasks" : "toStart")))));
}
