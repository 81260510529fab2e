"use strict";

/** How many calls to a server wait for decisions at the same time. */
const PERMITS = 40;
/** How long such a call waits, in seconds; and how long if other messages need its permit. */
const WAIT = 30;
const SHORT_WAIT = 2;

/** Lets all waiting messages of a server take turns, so that many of them need few connections. */
class Permits {
  #free;
  #queue = [];

  constructor(permits = PERMITS) {
    this.#free = permits;
  }

  /** How long the next call may wait, in seconds. */
  get wait() {
    return this.#queue.length > 0 ? SHORT_WAIT : WAIT;
  }

  /** Runs `work` when it is its turn. */
  async run(work) {
    if (this.#free > 0) this.#free -= 1;
    else await new Promise((resolve) => this.#queue.push(resolve));
    try {
      return await work();
    } finally {
      const next = this.#queue.shift();
      if (next) next();
      else this.#free += 1;
    }
  }
}

module.exports = { Permits };
