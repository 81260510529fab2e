"use strict";

/** The client, which is an ES module. */
module.exports = () => import("../client/index.js");
