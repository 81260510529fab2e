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
    const timer = setTimeout(done, milliseconds);
    addEventListener("online", done);
  });
}

/** Runs `attempt` until it succeeds, fails for good, or has failed too often. `onPause` is called before each pause. */
export async function withRetries(attempt, onPause) {
  for (const milliseconds of PAUSES) {
    try {
      return await attempt();
    } catch (error) {
      if (!error.temporary) throw error;
      onPause(error);
      await pause(Math.max(milliseconds, Math.min(error.retryAfter * 1_000, LONGEST_PAUSE)));
    }
  }
  return attempt();
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
  schedule();
}
