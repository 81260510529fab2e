"use strict";

/** How many calls to a server wait for decisions at the same time. */
const PERMITS = 40;
/** How long such a call waits, in seconds; and how long if other messages need its permit. */
const WAIT = 30;
const SHORT_WAIT = 2;

/** A key that was refused is tried again this often, in seconds: the server counts such calls like failed sign-ins. */
const REFUSED_PAUSE = 60;

/** Lets all waiting messages of a server take turns, so that many of them need few connections. */
class Permits {
  #free = PERMITS;
  #queue = [];
  #nextTry;

  /** How long the next call may wait, in seconds. */
  get wait() {
    return this.#queue.length > 0 ? SHORT_WAIT : WAIT;
  }

  /** The server has refused the key. */
  refused() {
    this.#nextTry = performance.now() + REFUSED_PAUSE * 1000;
  }

  /** The server has accepted the key. */
  accepted() {
    this.#nextTry = undefined;
  }

  /** For how many seconds no call may be made, because the key was refused. With 0, the caller makes the one that tries it. */
  claim() {
    if (this.#nextTry === undefined) return 0;
    const left = (this.#nextTry - performance.now()) / 1000;
    if (left <= 0) this.refused();
    return Math.max(0, left);
  }

  /** Runs `work` when it is its turn. Rejects if the signal is aborted before. */
  async run(work, signal) {
    if (this.#free > 0) this.#free -= 1;
    else await this.#turn(signal);
    try {
      return await work();
    } finally {
      const next = this.#queue.shift();
      if (next) next();
      else this.#free += 1;
    }
  }

  #turn(signal) {
    return new Promise((resolve, reject) => {
      const next = () => {
        signal.removeEventListener("abort", leave);
        resolve();
      };
      const leave = () => {
        this.#queue.splice(this.#queue.indexOf(next), 1);
        reject(signal.reason);
      };
      this.#queue.push(next);
      signal.addEventListener("abort", leave, { once: true });
    });
  }
}

module.exports = { Permits };
