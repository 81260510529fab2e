// A flow for tests, and what receives its messages.
"use strict";
const { createServer } = require("node:http");

/** Receives what comes out of the flow. */
class Sink {
  messages = [];
  #server = createServer(async (request, response) => {
    let text = "";
    for await (const part of request) text += part;
    this.messages.push(JSON.parse(text));
    response.end();
  });

  async start() {
    await new Promise((resolve) => this.#server.listen(0, "127.0.0.1", resolve));
    return this;
  }

  get url() {
    return `http://127.0.0.1:${this.#server.address().port}/`;
  }

  /** The messages of an output, or of a catch node. */
  of(output) {
    return this.messages.filter((message) => message.output === output);
  }

  async stop() {
    this.#server.closeAllConnections();
    await new Promise((resolve) => this.#server.close(resolve));
  }
}

const OUTPUTS = ["approved", "rejected", "due", "cancelled", "asked"];

/** HTTP in → ask → one function for each output → the sink. A message with `task` goes to *decide* instead. */
function flowOf({ url, sink, ask = {} }) {
  const z = "tab";
  const outputs = ask.link ? OUTPUTS : OUTPUTS.slice(0, 4);
  const report = (id, output, expression) => ({
    id, type: "function", z, name: output, outputs: 1, wires: [["post"]],
    func: `return { headers: {}, method: "POST", url: ${JSON.stringify(sink)}, payload: { output: ${JSON.stringify(output)}, ${expression} } };`,
  });
  const told = "decision: msg.decision, payload: msg.payload, order: msg.order, bytes: Buffer.isBuffer(msg.bytes) ? msg.bytes.toString() : undefined";
  const nodes = [
    { id: z, type: "tab", label: "Test" },
    { id: "server", type: "countersign-server", name: "", url, requester: "" },
    { id: "in", type: "http in", z, url: "/in", method: "post", wires: [["split", "response"]] },
    { id: "response", type: "http response", z, statusCode: "202", wires: [] },
    {
      id: "split", type: "function", z, outputs: 2, wires: [["ask"], ["decide"]],
      func: "const m = { ...msg, ...msg.payload }; if (m.bytes) m.bytes = Buffer.from(m.bytes); return m.task ? [null, m] : [m, null];",
    },
    {
      id: "ask", type: "countersign-ask", z, name: "", server: "server", title: "payload.title", titleType: "msg", description: "", descriptionType: "str",
      approver: "grace@example.com", approverType: "str", requester: "ada@example.com", requesterType: "str", due: "payload.due", dueType: "msg",
      metadata: "payload.metadata", metadataType: "msg", notify: "", deciders: "", commentRequired: false, withdraw: false, link: false,
      outputs: outputs.length, wires: outputs.map((output) => [output]), ...ask,
    },
    ...outputs.map((output) => report(output, output, told)),
    {
      id: "decide", type: "countersign-decide", z, name: "", server: "server", task: "task", taskType: "msg", action: "action", actionType: "msg",
      comment: "comment", commentType: "msg", wires: [["decided"]],
    },
    report("decided", "decided", told),
    { id: "catch", type: "catch", z, scope: null, uncaught: false, wires: [["error"]] },
    report("error", "error", "error: msg.error.message, source: msg.error.source.id, order: msg.order"),
    { id: "post", type: "http request", z, method: "use", ret: "txt", paytoqs: "ignore", url: "", wires: [[]] },
  ];
  // What has no place in the editor would be taken for a configuration node.
  return nodes.map((node) => (node.z ? { x: 100, y: 100, ...node } : node));
}

module.exports = { Sink, flowOf };
