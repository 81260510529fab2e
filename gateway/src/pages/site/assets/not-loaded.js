// Says so if a page cannot start because one of its files did not arrive, and loads it again. It is no module, so that it
// runs before them, and uses nothing of theirs.

(() => {
  // Removed by `frame.js` when a page starts.
  const RELOADS = "countersign-reloads";
  const PAUSES = [1_000, 4_000, 10_000];
  let isReported = false;

  // Every page shows its footer when it starts.
  const isStarted = () => document.getElementById("footer").hasChildNodes();

  function report() {
    if (isReported || isStarted()) return;
    isReported = true;
    const notice = document.getElementById("not-loaded");
    notice.hidden = false;
    for (const button of notice.querySelectorAll("button")) button.addEventListener("click", () => location.reload());
    const reloads = countReload();
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
    // A page starts without its logo.
    if (target instanceof HTMLImageElement) return;
    if (document.readyState === "loading") addEventListener("DOMContentLoaded", report);
    else report();
  }

  addEventListener("error", failed, true);
  addEventListener("unhandledrejection", failed);
})();
