"use strict";
const loadClient = require("../lib/client.js");
const { Permits } = require("../lib/permits.js");
const { version } = require("../package.json");

module.exports = (RED) => {
  function ServerNode(config) {
    RED.nodes.createNode(this, config);
    const permits = new Permits();
    let client;

    /** The client of this server. Throws if the address or the key cannot be right. */
    this.connect = async () => {
      const { Countersign } = await loadClient();
      const key = this.credentials?.key?.trim();
      if (!config.url) throw new TypeError("The server has no address.");
      if (!key) throw new TypeError("The server has no key.");
      const requester = config.requester?.trim();
      const options = { url: config.url.trim(), key, userAgent: `countersign-node-red/${version} node-red/${RED.version()}` };
      client ??= new Countersign(requester ? { ...options, requester } : options);
      return { client, permits };
    };
  }

  RED.nodes.registerType("countersign-server", ServerNode, { credentials: { key: { type: "password" } } });
};
