// A conversation of the official TypeScript SDK's client with belljar.
//
//   sdk_conversation.mjs PACKAGE http://ADDRESS/mcp    the token is in BELLJAR_TOKEN
//   sdk_conversation.mjs PACKAGE PROGRAM [FLAGS]       over stdio
//
// PACKAGE is the folder of @modelcontextprotocol/sdk (1.x, which begins with initialize) or of
// @modelcontextprotocol/client (2.x, which finds out what the server speaks).
import assert from "node:assert/strict";
import { pathToFileURL } from "node:url";

const [folder, target, ...flags] = process.argv.slice(2);
const isOld = folder.endsWith("/sdk");
const load = (file) => import(pathToFileURL(`${folder}/dist/${file}`).href);
const { Client } = await load(isOld ? "esm/client/index.js" : "index.mjs");
const { StdioClientTransport } = await load(isOld ? "esm/client/stdio.js" : "stdio.mjs");
const { StreamableHTTPClientTransport } = await load(isOld ? "esm/client/streamableHttp.js" : "index.mjs");
const elicit = isOld ? (await load("esm/types.js")).ElicitRequestSchema : "elicitation/create";

const drawing = [
  "import matplotlib.pyplot as p",
  "p.plot([1, 3, 2])",
  "p.show()",
  "open('notes.txt', 'w').write('alpha\\nbeta\\n')",
].join("\n");
const loop = "print('begun', flush=True)\nwhile True: pass";
const asked = [];

function transport() {
  if (!target.startsWith("http")) {
    return new StdioClientTransport({ command: target, args: flags, env: process.env });
  }
  const headers = { Authorization: `Bearer ${process.env.BELLJAR_TOKEN}` };
  return new StreamableHTTPClientTransport(new URL(target), { requestInit: { headers } });
}

const options = { capabilities: { elicitation: {} } };
if (!isOld) options.versionNegotiation = { mode: process.env.BELLJAR_ERA ?? "auto" };
const client = new Client({ name: "test", version: "1" }, options);
client.setRequestHandler(elicit, async (request) => {
  asked.push(request.params.message);
  const no = request.params.message.includes("rm -rf");
  return { action: "accept", content: { decision: no ? "deny" : "tool" } };
});

let named = {};
const call = (name, args, more) => {
  const params = { name, arguments: { ...args, ...named } };
  return isOld ? client.callTool(params, undefined, more) : client.callTool(params, more);
};

async function cancelALoop() {
  const stop = new AbortController();
  let hear;
  const begun = new Promise((resolve) => (hear = resolve));
  const onprogress = (progress) => progress.message?.includes("begun") && hear();
  const running = call("python", { code: loop }, { signal: stop.signal, onprogress, timeout: 120000 });
  await begun;
  stop.abort();
  await assert.rejects(running);
  // Its time is 60 s, and calls wait for one another.
  const again = await call("python", { code: "6 * 7" }, { timeout: 50000 });
  assert.equal(again.structuredContent.result, "42");
}

await client.connect(transport());
const tools = (await client.listTools()).tools;
for (const name of ["python", "shell", "read", "write", "edit", "glob", "grep"]) {
  assert.ok(tools.some((tool) => tool.name === name), name);
}

const drawn = await call("python", { code: drawing });
assert.ok(!drawn.isError, JSON.stringify(drawn));
assert.ok(asked[0].includes("matplotlib"), "a person was asked");
const image = drawn.content.find((part) => part.type === "image");
assert.equal(Buffer.from(image.data, "base64").subarray(1, 4).toString(), "PNG");
const link = drawn.content.find((part) => part.type === "resource_link");
const era = isOld ? "2025-11-25" : client.getNegotiatedProtocolVersion();
// Where no connection is kept, the session that came back is named from now on.
if (era >= "2026") named = { session: drawn.structuredContent.session };

await call("write", { path: "more.txt", content: "gamma\n" });
await call("edit", { path: "notes.txt", old_string: "beta", new_string: "delta" });
const found = await call("grep", { pattern: "delta|gamma" });
assert.deepEqual(found.structuredContent.matches.map((one) => one.text).sort(), ["delta", "gamma"]);
const read = async () => (await client.readResource({ uri: link.uri })).contents[0].text;
assert.equal(await read(), "alpha\ndelta\n");

const questions = asked.length;
const refused = await call("shell", { commands: ["rm -rf ."] });
assert.equal(refused.structuredContent.error_type, "not_approved");
assert.equal(asked.length, questions + 1);
assert.equal(await read(), "alpha\ndelta\n", "what was refused did not run");

await cancelALoop();
assert.equal(asked.length, questions + 1, "python was approved for the whole session");
const prompts = (await client.listPrompts()).prompts;
assert.ok((await client.getPrompt({ name: prompts.at(-1).name })).messages.length > 0);
await client.close();
console.log(era, "said goodbye");
