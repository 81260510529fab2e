/** A monotonic clock in seconds. */
export function now(): number {
  return performance.now() / 1000;
}

/** Resolves after this many seconds. Rejects with the signal's reason when that is aborted. */
export function sleep(seconds: number, signal?: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    if (signal?.aborted) return reject(signal.reason);
    const abort = () => {
      clearTimeout(timer);
      reject(signal?.reason);
    };
    const timer = setTimeout(() => {
      signal?.removeEventListener("abort", abort);
      resolve();
    }, Math.max(0, seconds) * 1000);
    signal?.addEventListener("abort", abort, { once: true });
  });
}

const FIRST_PAUSE = 0.25;
const LONGEST_PAUSE = 10;

/** The pause in seconds after this many failures in a row: it doubles up to ten seconds, and half of it is random. */
export function backOff(failures: number): number {
  const pause = Math.min(LONGEST_PAUSE, FIRST_PAUSE * 2 ** Math.min(failures - 1, 16));
  return pause * (0.5 + Math.random() / 2);
}

/** The longest time in seconds that this package sleeps because a server wants it to. */
const LONGEST_RETRY_AFTER = 3600;

/** The seconds of a `Retry-After`, which has a number of seconds or a date, by the server's time. */
export function retryAfter(value: string | null, serverTime: number): number | undefined {
  const text = value?.trim();
  if (!text) return undefined;
  const seconds = /^\d{1,9}$/.test(text) ? Number(text) : (Date.parse(text) - serverTime) / 1000;
  return Number.isFinite(seconds) ? Math.min(LONGEST_RETRY_AFTER, Math.max(0, seconds)) : undefined;
}

/** Checks a number of seconds that a caller gave. */
export function checkSeconds(name: string, value: number, least: number): number {
  if (typeof value !== "number" || !Number.isFinite(value) || value < least) {
    throw new RangeError(`\`${name}\` must be a number of seconds, at least ${least}.`);
  }
  return value;
}
