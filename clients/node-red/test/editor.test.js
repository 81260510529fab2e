// The editor's side of the nodes, in a real browser.
"use strict";
const assert = require("node:assert/strict");
const { readFile } = require("node:fs/promises");
const { join } = require("node:path");
const { after, before, describe, test } = require("node:test");

const { Page, chromium } = require("./support/browser.js");
const { flowOf } = require("./support/flow.js");
const { NodeRed, cleanUp, until } = require("./support/node-red.js");

describe("in the editor", { skip: !chromium && "Chromium is not installed" }, () => {
  let red, page;
  const pictures = process.env.PICTURES;

  before(async () => {
    red = await NodeRed.create(flowOf({ url: "https://countersign.example.com", sink: "http://127.0.0.1:9/" }), { server: { key: "csk_secret" } });
    page = await Page.open(red.url);
    await until(() => page.evaluate("typeof RED !== 'undefined' && Boolean(RED.nodes && RED.nodes.node && RED.nodes.node('ask'))"), "the editor", 60);
  });
  after(async () => {
    await page?.close();
    await red?.stop();
    await cleanUp();
  });

  /** Opens the dialog of a node, runs the script in it, and presses a button. */
  async function edit(id, script, button = "#node-dialog-ok") {
    await page.evaluate(`RED.editor.edit${id === "server" ? "Config('', 'countersign-server', 'server')" : `(RED.nodes.node('${id}'))`}`);
    await until(() => page.evaluate(`$("${button}:visible").length === 1 && !$("#main-container").is(".ui-animating")`), "the dialog");
    await until(() => page.evaluate("$('.red-ui-tray').last().position().left < $('#red-ui-main-container').width() - 100"), "the dialog's place");
    if (id === "server") await until(() => page.evaluate("Boolean($('#node-config-input-key').val())"), "the fields");
    if (pictures) await page.screenshot(join(pictures, `${id}.png`));
    const value = await page.evaluate(script);
    await page.evaluate(`$("${button}").click(), true`);
    await until(() => page.evaluate("$('.red-ui-tray').length === 0"), "the end of the dialog");
    return value;
  }

  test("ask shows its fields and saves them", async () => {
    const shown = await edit("ask", `(() => {
      const types = ["title", "approver", "due", "metadata"].map((name) => $("#node-input-" + name).typedInput("type"));
      const before = [$("#node-input-title").typedInput("value"), ...types];
      $("#node-input-approver").typedInput("value", "joan@example.com");
      $("#node-input-due").typedInput("type", "str").typedInput("value", "3600");
      $("#node-input-link").prop("checked", true);
      $("#node-input-deciders").val("signed-in");
      return before;
    })()`);
    assert.deepEqual(shown, ["payload.title", "msg", "str", "msg", "msg"]);
    const saved = await page.evaluate("(({approver, approverType, due, dueType, outputs, link, deciders, valid}) => [approver, approverType, due, dueType, outputs, link, deciders, valid])(RED.nodes.node('ask'))");
    assert.deepEqual(saved, ["joan@example.com", "str", "3600", "str", 5, true, "signed-in", true]);
  });

  test("decide shows its fields and saves them", async () => {
    await edit("decide", `$("#node-input-action").typedInput("type", "str"), $("#node-input-action").typedInput("value", "reject"), true`);
    const saved = await page.evaluate("(({action, actionType, task, taskType, valid}) => [action, actionType, task, taskType, valid])(RED.nodes.node('decide'))");
    assert.deepEqual(saved, ["reject", "str", "task", "msg", true]);
  });

  test("the server's key is not sent to the editor", async () => {
    const shown = await edit("server", `[$("#node-config-input-url").val(), $("#node-config-input-key").val()]`, "#node-config-dialog-cancel");
    assert.deepEqual(shown, ["https://countersign.example.com", "__PWRD__"]);
  });

  test("nodes have help, and the page has no errors", async () => {
    for (const type of ["ask", "decide", "server"]) {
      assert.ok((await page.evaluate(`RED.nodes.getNodeHelp("countersign-${type}")`)).includes("<h3>"), type);
    }
    assert.deepEqual(page.errors, []);
  });

  test("the example can be imported and deployed", async () => {
    const example = JSON.parse(await readFile(join(__dirname, "..", "examples", "ask for approval.json"), "utf8"));
    await page.evaluate(`RED.view.importNodes(${JSON.stringify(example)}, { generateIds: false, addFlow: false, touchImport: true }), true`);
    const ask = example.find((node) => node.type === "countersign-ask");
    assert.equal(await page.evaluate(`RED.nodes.node("${ask.id}").valid`), true);
    await red.deploy(example, { [ask.server]: { key: "csk_example" } });
    const kept = JSON.parse(await readFile(join(red.userDir, "flows.json"), "utf8"));
    assert.equal(kept.length, example.length);
  });
});
