// Repeats work that fails temporarily, and work that keeps a page up to date.

const PAUSES = [500, 1_000, 2_000, 4_000, 8_000, 8_000];
const LONGEST_PAUSE = 30_000;
const INTERVAL = 12_000;
const LONGEST_INTERVAL = 120_000;

/** Waits, but not longer than until the browser is online again. */
function pause(milliseconds) {
  return new Promise((resolve) => {
    const done = () => {
      clearTimeout(timer);
      removeEventListener("online", done);
      resolve();
    };
    const timer = milliseconds === Infinity ? 0 : setTimeout(done, milliseconds);
    addEventListener("online", done);
  });
}

/**
 * Runs `attempt` until it succeeds, fails for good, or has failed too often. A browser that is offline waits until it is not.
 * `onPause` is called before each pause, with whether it may be long.
 */
export async function withRetries(attempt, onPause) {
  for (let failures = 0; ; failures += 1) {
    try {
      return await attempt();
    } catch (error) {
      const isOffline = error.status === 0 && navigator.onLine === false;
      const isLast = failures >= PAUSES.length;
      if (!error.temporary || (isLast && !isOffline)) throw error;
      onPause(error, isLast);
      await pause(isLast ? Infinity : Math.max(PAUSES[failures], Math.min(error.retryAfter * 1_000, LONGEST_PAUSE)));
      if (isLast) failures = 0;
    }
  }
}

/** Runs `work` at intervals while the page is visible, and less often while it fails. */
export function repeat(work) {
  let interval = INTERVAL;
  let timer;
  let running = false;
  const schedule = () => {
    clearTimeout(timer);
    if (document.visibilityState === "visible") timer = setTimeout(run, interval);
  };
  const run = async () => {
    if (running) return;
    running = true;
    try {
      await work();
      interval = INTERVAL;
    } catch {
      interval = Math.min(interval * 2, LONGEST_INTERVAL);
    }
    running = false;
    schedule();
  };
  document.addEventListener("visibilitychange", () => {
    if (document.visibilityState === "visible") run();
    else clearTimeout(timer);
  });
  addEventListener("online", run);
  schedule();
}
