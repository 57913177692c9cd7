import { execFile } from "node:child_process";
import { join } from "node:path";
import { promisify } from "node:util";
import { StdioClientTransport } from "@modelcontextprotocol/client/stdio";
import { describe, expect, onTestFinished, test } from "vitest";
import { openKeyedServer } from "../support/keyed-server.ts";
import { callTool, createClient, type McpClientParams } from "../support/mcp.ts";
import { newFolder, runRota } from "./server-process.ts";

const ROOT = join(import.meta.dirname, "..", "..");
const LATER = "2100-01-01T00:00:00Z";

/** `rota mcp ARGS` as a client starts it. */
async function connect(
  args: readonly string[],
  {
    environment = {},
    ...params
  }: Pick<McpClientParams, "era" | "reply"> & { environment?: Record<string, string> },
) {
  const client = createClient(params);
  const transport = new StdioClientTransport({
    command: process.execPath,
    args: [join(ROOT, "src", "cli", "main.ts"), "mcp", ...args],
    cwd: newFolder(),
    env: { PATH: "", ...environment },
    stderr: "inherit",
  });
  onTestFinished(() => client.close());
  await client.connect(transport);
  return client;
}

describe("rota mcp", () => {
  test("serves the tools that the role of ROTA_KEY may use, on the server at ROTA_URL", async () => {
    const { url, key, rota } = await openKeyedServer({
      options: { agents: { scout: { executor: { type: "echo" } } } },
    });
    const environment = { ROTA_URL: url, ROTA_KEY: await key({ role: "agent", agentId: "scout" }) };
    const questions: string[] = [];
    const reply = (question: string) => {
      questions.push(question);
      return "accept" as const;
    };
    const client = await connect([], { era: "legacy", environment, reply });
    const { tools } = await client.listTools();
    expect(tools.map(({ name }) => name)).toEqual(["submit", "get", "explain", "list", "change", "say"]);
    const { text, json } = await callTool(client, "submit", { message: "hello", waitS: 20 });
    expect(text).toContain("hello\n</result>");
    expect((await rota.tasks.get(json.taskId)).createdBy).toMatchObject({
      agentId: "scout",
      via: "mcp",
      client: "test-client/1.2",
    });
    expect((await callTool(client, "get", { id: "tsk_nobody" })).text).toBe("task not found (not_found)");
    const { taskId } = await rota.tasks.submit({ agentId: "scout", message: "x", runAt: LATER });
    expect((await callTool(client, "change", { what: "cancel", id: taskId })).text).toBe(
      `${taskId} cancelled`,
    );
    expect(questions).toEqual([`Cancel task ${taskId} of agent "scout": it is delayed, attempts: 0.`]);
    const { entries } = await rota.audit.list();
    expect(entries.map(({ route, createdBy }) => [route, createdBy?.via])).toEqual([
      ["POST /v1/tasks/{id}/cancel", "mcp"],
      ["POST /v1/tasks", "mcp"],
    ]);
  });

  test("runs a scheduler in its own process with --embedded, and offers only the named tools", async () => {
    const client = await connect(["--embedded", "sqlite:rota.db", "--tools", "submit,get,change,schedule"], {
      era: "auto",
    });
    const { tools } = await client.listTools();
    expect(tools.map(({ name }) => name)).toEqual(["submit", "get", "schedule", "change"]);
    await expect(client.callTool({ name: "list", arguments: { what: "tasks" } })).rejects.toMatchObject({
      code: -32_602,
    });
    const { text } = await callTool(client, "submit", { message: "hello", waitS: 20 });
    expect(text).toContain("hello\n</result>");
    const planned = { when: "every day", message: "x", dryRun: false };
    expect((await callTool(client, "schedule", planned)).text).toMatch(/^Schedule #1 stored/);
    expect((await callTool(client, "change", { what: "delete", id: "1" })).text).toBe("Schedule #1 deleted");
  });

  test.each([
    [["--tools", "submit,keys"], '--tools: there is no tool "keys"'],
    [["--embedded", "sqlite::memory:", "--url", "http://127.0.0.1:1"], "--embedded runs without a server"],
    [["--url", "http://127.0.0.1:1"], "cannot reach Rota at http://127.0.0.1:1"],
  ])("%j ends with a sentence", async (args, sentence) => {
    const process = runRota(["mcp", ...args]);
    expect((await process.ended).code).not.toBe(0);
    expect(process.stderr()).toContain(sentence);
    expect(process.stdout()).toBe("");
  });

  test("a key of a worker, which has no tools, ends with a sentence", async () => {
    const { url, key } = await openKeyedServer();
    const environment = { ROTA_URL: url, ROTA_KEY: await key({ role: "worker", agents: ["py"] }) };
    const process = runRota(["mcp"], { environment });
    expect((await process.ended).code).toBe(2);
    expect(process.stderr()).toContain("an API key with the role `worker` has no tools");
  });

  test("ends when its client closes its input", async () => {
    const process = runRota(["mcp", "--embedded", "sqlite::memory:"], { input: "" });
    expect(await process.ended).toEqual({ code: 0, signal: null });
    expect(process.stdout()).toBe("");
  });

  test("responds to the calls that its input ends with", async () => {
    const clientInfo = { name: "pipe", version: "1" };
    const messages = [
      {
        id: 1,
        method: "initialize",
        params: { protocolVersion: "2025-06-18", capabilities: {}, clientInfo },
      },
      { method: "notifications/initialized" },
      { id: 2, method: "tools/call", params: { name: "submit", arguments: { message: "hello", waitS: 20 } } },
      { id: 3, method: "tools/call", params: { name: "list", arguments: { what: "lanes" } } },
    ];
    const input = messages.map((message) => `${JSON.stringify({ jsonrpc: "2.0", ...message })}\n`).join("");
    const process = runRota(["mcp", "--embedded", "sqlite::memory:"], { input });
    expect(await process.ended).toEqual({ code: 0, signal: null });
    const responses = process
      .stdout()
      .trimEnd()
      .split("\n")
      .map((line) => JSON.parse(line));
    const byId = new Map(responses.map((response) => [response.id, response]));
    expect([...byId.keys()].toSorted()).toEqual([1, 2, 3]);
    expect(byId.get(2).result.content[0].text).toContain("hello\n</result>");
  });
});

test("a server loads the package of the protocol with the first request for it", async () => {
  const program = `
    import { registerHooks } from "node:module";
    const loaded = new Set();
    registerHooks({ load: (url, context, next) => (loaded.add(url), next(url, context)) });
    const count = () => [...loaded].filter((url) => /@modelcontextprotocol|src.mcp/.test(url)).length;
    const { createRota } = await import(${JSON.stringify(join(ROOT, "src/rota.ts"))});
    const { listen } = await import(${JSON.stringify(join(ROOT, "src/server/listen.ts"))});
    const { silentLog } = await import(${JSON.stringify(join(ROOT, "src/model/log.ts"))});
    const rota = await createRota({ storage: "sqlite::memory:" });
    const server = await listen({ rota, log: silentLog, host: "127.0.0.1", port: 0 });
    await rota.start();
    await fetch(server.url + "/tasks");
    const before = count();
    const body = JSON.stringify({ jsonrpc: "2.0", id: 1, method: "tools/list" });
    const headers = { "content-type": "application/json", accept: "application/json, text/event-stream" };
    const { status } = await fetch(server.url + "/mcp", { method: "POST", body, headers });
    console.log(JSON.stringify({ before, status, after: count() > 0 }));
    process.exit(0);`;
  const args = ["--input-type=module", "--eval", program];
  const { stdout } = await promisify(execFile)(process.execPath, args, { cwd: newFolder() });
  expect(JSON.parse(stdout)).toEqual({ before: 0, status: 200, after: true });
});
