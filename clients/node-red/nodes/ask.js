"use strict";
const { randomUUID } = require("node:crypto");
const { setMaxListeners } = require("node:events");
const { dueDate, evaluate, text } = require("../lib/fields.js");
const { Question } = require("../lib/question.js");
const { Store, pack, unpack } = require("../lib/store.js");

const OUTPUTS = ["approved", "rejected", "due", "cancelled", "asked"];

module.exports = (RED) => {
  class Waiting {
    #node;
    #config;
    #server;
    #store;
    #stop = new AbortController();
    #asking = new Set();
    #running = new Map();
    #trouble;

    constructor(node, config) {
      this.#node = node;
      this.#config = config;
      this.#server = RED.nodes.getNode(config.server);
      this.#store = new Store(RED.settings.userDir, node.id);
      // Each message that waits listens.
      setMaxListeners(0, this.#stop.signal);
    }

    /** Goes on with the messages of an earlier run. */
    async resume() {
      if (!this.#store.isPersistent) this.#node.warn("Node-RED has no userDir: messages that wait do not survive a restart.");
      const { records, unreadable } = await this.#store.load();
      for (const name of unreadable) this.#node.error(`A message that waited cannot be read: ${name}`);
      for (const record of records) if (!this.#stop.signal.aborted) this.#resume(record);
      this.#show();
    }

    /** A message that cannot be read, such as one that is nested too deeply, keeps no other from going on. */
    #resume(record) {
      try {
        this.#start(record, unpack(record.message));
      } catch (error) {
        this.#node.error(`A message that waited cannot be read: ${record.id}: ${error.message}`);
      }
    }

    /** Asks for a message. The question is on the disk before it is asked. */
    ask(message, done) {
      const asking = this.#ask(message, done);
      this.#asking.add(asking);
      return asking.finally(() => this.#asking.delete(asking));
    }

    async #ask(message, done) {
      if (!this.#server) throw new Error("The node has no server.");
      const { client } = await this.#server.connect();
      const question = await this.#question(message, client.now());
      const withdraw = Boolean(this.#config.withdraw) && question.decisionBy !== undefined;
      const record = { id: randomUUID(), created: Date.now(), key: randomUUID(), question, withdraw, message: pack(message) };
      await this.#store.save(record);
      this.#start(record, message, done);
      this.#show();
    }

    /** Stops, and leaves what is kept: all of it is on the disk when this resolves. */
    async close() {
      this.#stop.abort();
      await Promise.allSettled(this.#asking);
      await Promise.all(this.#running.values());
    }

    async #question(message, now) {
      const get = (name) => evaluate(RED, this.#node, this.#config, name, message);
      const [title, approver, requester, description] = await Promise.all(["title", "approver", "requester", "description"].map(get));
      const [due, metadata] = await Promise.all(["due", "metadata"].map(get));
      const question = { title: text(title), approver: text(approver), requester: text(requester), description: text(description) };
      if (metadata && Object.keys(metadata).length > 0) question.metadata = metadata;
      question.decisionBy = dueDate(due, now);
      const { notify, deciders, commentRequired } = this.#config;
      if (notify) question.notify = notify === "true";
      if (deciders) question.deciders = deciders;
      if (commentRequired) question.commentRequired = true;
      for (const name of ["title", "approver"]) if (!question[name]) throw new Error(`The field "${name}" is empty.`);
      return JSON.parse(JSON.stringify(question));
    }

    #start(record, message, done) {
      const running = this.#run(record, message, done).catch((error) => this.#node.error(error.message));
      this.#running.set(record.id, running);
      void running.finally(() => {
        this.#running.delete(record.id);
        this.#show();
      });
    }

    async #run(record, message, done) {
      const { signal } = this.#stop;
      const save = () => this.#store.save(record);
      let known;
      const tell = (what, about) => {
        const isKnown = what === "trouble" && known === about.code;
        known = what === "trouble" ? about.code : undefined;
        this.#tell(what, about, message, isKnown);
      };
      try {
        if (!this.#server) throw new Error("The node has no server.");
        const { client, permits } = await this.#server.connect();
        await new Question({ client, permits, record, save, signal, tell }).run();
        await this.#store.remove(record);
        done?.();
      } catch (error) {
        if (signal.aborted) return;
        // What is wrong with the settings is put right by a deploy, and the message then goes on.
        if (error.name === "Failed") await this.#store.remove(record);
        if (done) done(error);
        else this.#node.error(error, message);
      }
    }

    #tell(what, about, message, isKnown) {
      if (what === "trouble") return this.#report(about, message, isKnown);
      this.#trouble = undefined;
      if (what === "well") return this.#show();
      const output = OUTPUTS.indexOf(what);
      if (what === "asked" && !this.#config.link) return this.#show();
      const outgoing = RED.util.cloneMessage(message);
      outgoing.decision = what === "asked" ? { ...about } : { ...about, status: what };
      const all = Array(this.#config.link ? 5 : 4).fill(null);
      all[output] = outgoing;
      this.#node.send(all);
      this.#show();
    }

    /** A refused key, or one that does not see the task, is an error once; what passes by itself is only shown. */
    #report(error, message, isKnown) {
      const isRefused = error.status === 401 || error.status === 403 || error.code === "not-found";
      if (isRefused && !isKnown && this.#trouble !== error.code) this.#node.error(error, message);
      this.#trouble = error.code ?? "error";
      this.#show();
    }

    #show() {
      if (this.#stop.signal.aborted) return;
      const count = this.#running.size;
      if (count === 0) this.#node.status({});
      else if (this.#trouble) this.#node.status({ fill: "red", shape: "ring", text: `${count} waiting: ${this.#trouble}` });
      else this.#node.status({ fill: "blue", shape: "ring", text: `${count} waiting` });
    }
  }

  function AskNode(config) {
    RED.nodes.createNode(this, config);
    const waiting = new Waiting(this, config);
    const resumed = waiting.resume().catch((error) => this.error(error.message));
    this.on("input", (message, _, done) => {
      resumed.then(() => waiting.ask(message, done)).catch(done);
    });
    this.on("close", (done) => {
      resumed.then(() => waiting.close()).finally(done);
    });
  }

  RED.nodes.registerType("countersign-ask", AskNode);
};
