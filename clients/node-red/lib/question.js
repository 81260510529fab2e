"use strict";
const os = require("node:os");

const INCLUDE = ["comment", "decidedBy", "decisionMade", "decidedVia", "metadata", "version"];
/** For how long the server knows the key of a creation, less an hour, in seconds. */
const KEY_LIFETIME = 23 * 3600;
/** The pauses after failures, in seconds. They double. */
const FIRST_PAUSE = 0.5;
const LONGEST_PAUSE = 30;
/** What a key may not do or see is tried again this often, in seconds, because it may be replaced, and its scopes may change. */
const FORBIDDEN_PAUSE = 60;

/** The question was answered by an error for good. */
class Failed extends Error {
  constructor(cause) {
    super(cause.message, { cause });
    this.name = "Failed";
    this.code = cause.code;
  }
}

/**
 * Makes the task of a record, waits for its end, and tells what happens.
 *
 * A record has everything that goes on after a restart: the question and the key under which the server makes one task of it,
 * then the task's id, and the due date that was told.
 */
class Question {
  #client;
  #permits;
  #record;
  #save;
  #signal;
  #tell;
  /** The age of the record now, in seconds: the computer's clock may be set meanwhile, and the computer may sleep. */
  #age;

  /**
   * @param {object} parts
   * @param parts.client the client of the server
   * @param parts.permits what lets calls wait
   * @param parts.record what is kept
   * @param parts.save writes the record
   * @param parts.signal ends the wait, which goes on from the record later
   * @param parts.tell is called with `asked`, `due`, `approved`, `rejected` or `cancelled` and the task, with `trouble` and an
   *   error that may pass, and with `well` when it has passed
   */
  constructor({ client, permits, record, save, signal, tell }) {
    [this.#client, this.#permits, this.#record] = [client, permits, record];
    [this.#save, this.#signal, this.#tell] = [save, signal, tell];
    const [age, begun] = [(Date.now() - record.created) / 1000, os.uptime()];
    this.#age = () => age + os.uptime() - begun;
  }

  /** Resolves when the question has ended, and all was told. Rejects with `Failed` if it never will, or when the signal is aborted. */
  async run() {
    for (let failures = 0; ; ) {
      this.#signal.throwIfAborted();
      const left = this.#permits.claim();
      if (left > 0) {
        await this.#sleep(left);
        continue;
      }
      try {
        const hasEnded = await this.#step();
        this.#permits.accepted();
        if (hasEnded) return;
        if (failures > 0) this.#tell("well");
        failures = 0;
      } catch (error) {
        this.#signal.throwIfAborted();
        const pause = this.#pauseAfter(error, failures);
        failures += 1;
        this.#tell("trouble", error);
        await this.#sleep(pause);
      }
    }
  }

  /** One call. Returns whether the question has ended. */
  async #step() {
    if (!this.#record.taskId) return this.#ask();
    const begun = performance.now();
    const task = await this.#permits.run(() => this.#get(), this.#signal);
    this.#signal.throwIfAborted();
    this.#record.decisionBy = task.decisionBy;
    if (task.status !== "pending") return this.#end(task);
    if (this.#isDue(task) && this.#record.dueTold !== task.decisionBy) return this.#due(task);
    // Without a wait, such as from a server that stops, it must not be asked at once.
    const left = 1 - (performance.now() - begun) / 1000;
    if (left > 0) await this.#sleep(left);
    return false;
  }

  async #ask() {
    const { key, question } = this.#record;
    if (this.#age() > KEY_LIFETIME) {
      throw new Failed(new Error("The question could not be asked for a day. It may have been asked, so it is not asked again."));
    }
    const task = await this.#client.create(question, { idempotencyKey: key, signal: this.#signal, retryFor: 0 });
    this.#record.taskId = task.id;
    this.#record.decisionBy = task.decisionBy;
    const { approverSecret, requesterSecret, ...shown } = task;
    // Before it is saved: what is told twice after a failure is better than what is never told.
    this.#tell("asked", { ...shown, link: this.#client.linkFor(task) });
    await this.#save();
    return false;
  }

  #get() {
    const { taskId, decisionBy, dueTold } = this.#record;
    const left = decisionBy && decisionBy !== dueTold ? (dateOf(decisionBy) - this.#client.now()) / 1000 : Infinity;
    const wait = Math.min(this.#permits.wait, Math.ceil(left));
    const options = { include: INCLUDE, signal: this.#signal, retryFor: 0 };
    return this.#client.get(taskId, wait >= 1 ? { ...options, wait } : options);
  }

  #isDue(task) {
    return task.decisionBy !== null && dateOf(task.decisionBy) <= this.#client.now();
  }

  #end(task) {
    const isDueNow = task.status === "cancelled" && this.#record.withdrawing;
    this.#tell(isDueNow ? "due" : task.status, task);
    return true;
  }

  async #due(task) {
    if (this.#record.withdraw) {
      this.#record.withdrawing = true;
      await this.#save();
      await this.#client
        .cancel(task.id, { reason: "It was not decided in time.", signal: this.#signal, retryFor: 0 })
        // It has ended in this moment, or in an earlier attempt: the next call says how.
        .catch((error) => {
          if (error.code !== "task-already-resolved") throw error;
        });
      return false;
    }
    this.#record.dueTold = task.decisionBy;
    this.#tell("due", task);
    await this.#save();
    return false;
  }

  /** How long to wait after an error; throws one that is for good. */
  #pauseAfter(error, failures) {
    if (error instanceof Failed) throw error;
    if (error.status === 401) {
      this.#permits.refused();
      return 0;
    }
    if (error.status === 403 || this.#isUnseen(error)) return FORBIDDEN_PAUSE;
    const isRefusal = error.status >= 400 && error.status < 500 && ![408, 429].includes(error.status);
    const isWrong = error instanceof TypeError || error instanceof RangeError || error.code === "requester-missing";
    if ((isRefusal && error.code !== "idempotency-key-in-use" && error.code !== "unexpected-answer") || isWrong) throw new Failed(error);
    const pause = Math.min(LONGEST_PAUSE, FIRST_PAUSE * 2 ** Math.min(failures, 10));
    return Math.max(pause * (0.5 + Math.random() / 2), error.retryAfter ?? 0);
  }

  /** Whether the server has no such task for the key, which may be that of another account or another server. */
  #isUnseen(error) {
    return this.#record.taskId !== undefined && error.code === "not-found";
  }

  #sleep(seconds) {
    const signal = this.#signal;
    return new Promise((resolve) => {
      const done = () => {
        clearTimeout(timer);
        signal.removeEventListener("abort", done);
        resolve();
      };
      const timer = setTimeout(done, seconds * 1000);
      signal.addEventListener("abort", done);
    });
  }
}

/** A due date of the server, which is in UTC. */
function dateOf(decisionBy) {
  return Date.parse(`${decisionBy.replace(" ", "T")}Z`);
}

module.exports = { Failed, Question };
