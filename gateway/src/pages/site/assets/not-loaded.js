// Says so if a page cannot start because one of its files did not arrive, and loads it again. It is no module, so that it
// runs before them, and uses nothing of theirs.

(() => {
  // Removed by `frame.js` when a page starts.
  const RELOADS = "countersign-reloads";
  const PAUSES = [1_000, 4_000, 10_000];
  let isReported = false;

  // Every page shows its footer when it starts, and then its content.
  const hasFooter = () => document.getElementById("footer").hasChildNodes();
  function isStarted() {
    const content = document.getElementById("content");
    return hasFooter() && !(content && (content.children.length === 0 || content.querySelector(".skeleton")));
  }

  function report() {
    if (isReported || isStarted()) return;
    isReported = true;
    const notice = document.getElementById("not-loaded");
    notice.hidden = false;
    for (const button of notice.querySelectorAll("button")) button.addEventListener("click", () => location.reload());
    // A page that shows its footer forgets how often it was loaded, so it is not loaded again by itself.
    const reloads = hasFooter() ? PAUSES.length : countReload();
    if (reloads >= PAUSES.length) return;
    setTimeout(() => location.reload(), PAUSES[reloads]);
    addEventListener("online", () => location.reload());
  }

  /** How often the page was loaded again before. A browser that stores nothing does not do so by itself, or it would never end. */
  function countReload() {
    try {
      const reloads = Number(sessionStorage.getItem(RELOADS));
      sessionStorage.setItem(RELOADS, reloads + 1);
      return reloads;
    } catch {
      return PAUSES.length;
    }
  }

  function failed({ target }) {
    // A page starts without its logo, and asks again for what was only to be loaded early.
    if (target instanceof HTMLImageElement || target.rel === "modulepreload") return;
    if (document.readyState === "loading") addEventListener("DOMContentLoaded", report);
    else report();
  }

  addEventListener("error", failed, true);
  addEventListener("unhandledrejection", failed);
})();
