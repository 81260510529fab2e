"use strict";
const { evaluate, text } = require("../lib/fields.js");

const ACTIONS = ["approve", "reject", "cancel"];

module.exports = (RED) => {
  function DecideNode(config) {
    RED.nodes.createNode(this, config);
    const server = RED.nodes.getNode(config.server);
    const stop = new AbortController();

    const decide = async (message) => {
      if (!server) throw new Error("The node has no server.");
      const { client } = await server.connect();
      const get = (name) => evaluate(RED, this, config, name, message);
      const [task, action, comment] = await Promise.all(["task", "action", "comment"].map(get));
      if (!ACTIONS.includes(action)) throw new Error(`The field "action" must be approve, reject or cancel.`);
      const said = comment === undefined ? {} : { [action === "cancel" ? "reason" : "comment"]: text(comment) };
      return client[action](text(task), { ...said, signal: stop.signal });
    };

    this.on("input", (message, send, done) => {
      decide(message).then(
        (task) => {
          send({ ...message, decision: task });
          done();
        },
        (error) => (stop.signal.aborted ? undefined : done(error)),
      );
    });
    this.on("close", () => stop.abort());
  }

  RED.nodes.registerType("countersign-decide", DecideNode);
};
