import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { type AgentProgram, startAgentProgram } from "./agent-program.ts";
import {
  eventually,
  newFolder,
  type RunParams,
  runRota,
  type ServerProcess,
  startServer,
} from "./server-process.ts";

interface Chat {
  readonly server: ServerProcess;
  /** Does the work of the agent `slow`. */
  readonly program: AgentProgram;
  readonly folder: string;
}

/** A server on a file whose agent `slow` keeps its messages running, without a debounce. */
async function startChat(): Promise<Chat> {
  const program = await startAgentProgram();
  const folder = newFolder();
  const agents = { slow: { executor: { type: "http", url: program.url } } };
  const config = { agents, sessions: { debounceMs: 0 }, scheduler: { noExecutorSec: 0 } };
  writeFileSync(join(folder, "rota.config.json"), JSON.stringify(config));
  return { program, folder, server: await startServer({ folder, storage: "sqlite:rota.db" }) };
}

/** Runs a command to its end. */
async function run({ server }: Chat, args: readonly string[], params: RunParams = {}) {
  const process = runRota(args, { environment: { ROTA_URL: server.url }, ...params });
  const { code, signal } = await process.ended;
  return { code: code ?? signal, stdout: process.stdout(), stderr: process.stderr() };
}

async function say(chat: Chat, ...args: string[]): Promise<string> {
  return (await run(chat, ["say", "user:42", ...args])).stdout.trim();
}

describe("a conversation with a server that is killed", () => {
  test("goes on where it was: what ran once more, then what waited, in order", async () => {
    const { server, program, folder } = await startChat();
    const send = async (message: string) =>
      (await server.ask("/v1/sessions/user:42/messages", { json: { message, agentId: "slow" } })).body.taskId;
    const ids = [await send("one"), await send("two"), await send("three")];
    await eventually(() => program.holding().length === 1, "the first to run");
    server.kill("SIGKILL");
    await server.ended;

    const again = await startServer({ folder, storage: "sqlite:rota.db" });
    program.release();
    await eventually(
      async () => (await again.ask("/v1/sessions/user:42")).body.queued === 0,
      "all to be answered",
    );
    const tasks = await Promise.all(ids.map(async (id) => (await again.ask(`/tasks/${id}?wait=10`)).body));
    expect(tasks).toMatchObject([
      { state: "done", attempts: [{ outcome: "lost" }, { outcome: "done" }] },
      { state: "done", attempts: [{}] },
      { state: "done", attempts: [{}] },
    ]);
    const starts = tasks.map(({ attempts }) => attempts.at(-1).startedAt);
    expect([...starts].sort()).toEqual(starts);
    expect((await again.ask("/v1/sessions/user:42")).body).toMatchObject({ agentId: "slow", running: 0 });
  });
});

describe("rota say, stop and sessions", () => {
  test("say something, see that it waits, stop it", async () => {
    const chat = await startChat();
    const running = await say(chat, "--agent", "slow", "hello", "there");
    await eventually(() => chat.program.holding().length === 1, "it to run");
    const waiting = await say(chat, "more");
    expect((await chat.server.ask(`/tasks/${running}`)).body).toMatchObject({
      message: "hello there",
      sessionKey: "user:42",
    });

    expect((await run(chat, ["sessions"])).stdout).toMatch(
      /^SESSION +AGENT +LANE +MODE +RUNNING +WAITING +CONTEXT\nuser:42 +slow +main +queue +1 of 1 +1\n$/,
    );
    const why = (await run(chat, ["task", waiting, "--why"])).stdout;
    expect(why).toContain(`- the session "user:42" is busy with ${running}; the session runs 1 at once\n`);
    const listed = (await run(chat, ["tasks", "--session", "user:42", "--json"])).stdout;
    expect(JSON.parse(listed).count).toBe(2);
    expect((await run(chat, ["task", waiting])).stdout).toMatch(/^session +user:42$/m);

    expect(await run(chat, ["stop", "user:42", "--all"])).toMatchObject({
      code: 0,
      stdout: `${running} stopped\n${waiting} cancelled\n`,
    });
    expect(await run(chat, ["stop", "user:42"])).toEqual({
      code: 0,
      stdout: "",
      stderr: "No task to stop.\n",
    });
    const last = await say(chat, "again");
    await eventually(() => chat.program.holding().includes(last), "it to run");
    expect(await say(chat, "/stop")).toBe(`${last} stopped`);
    expect(JSON.parse((await run(chat, ["stop", "user:42", "--reset", "--json"])).stdout)).toEqual({
      stopped: [],
      cancelled: [],
    });
    expect((await run(chat, ["sessions", "user:42"])).stdout).toMatch(/^generation +1$/m);
  });

  test("wait for the answer, and end as the task does", async () => {
    const chat = await startChat();
    expect(await run(chat, ["say", "me", "hello", "--wait"])).toMatchObject({ code: 0, stdout: "hello\n" });
    const failed = await run(chat, ["say", "me", "hello", "--agent", "nobody", "--wait", "--json"]);
    expect(failed.code).toBe(1);
    expect(JSON.parse(failed.stdout)).toMatchObject({ state: "failed", sessionKey: "me" });
    const unserved = await run(chat, ["say", "you", "hello", "--agent", "nobody"]);
    expect(unserved.stdout).toMatch(/^tsk_\w+\n$/);
    expect(unserved.stderr).toMatch(/^warning: agent "nobody" has no executor/);
    const late = await run(chat, ["say", "me", "hello", "--agent", "slow", "--wait", "0.3"]);
    expect([late.code, late.stdout]).toEqual([5, ""]);
    expect(late.stderr).toContain("The task continues");
    const stopped = await run(chat, ["say", "me", "/stopall", "--wait"]);
    expect([stopped.code, stopped.stdout]).toEqual([0, expect.stringMatching(/^tsk_\w+ stopped\n$/)]);
  });

  test("interrupt, and follow one session alone", async () => {
    const chat = await startChat();
    await say(chat, "--agent", "slow", "first");
    await eventually(() => chat.program.holding().length === 1, "it to run");
    await run(chat, ["say", "other", "hello", "--wait"]);
    const now = await say(chat, "--mode", "interrupt", "now");
    await eventually(() => chat.program.holding().includes(now), "the other to run");
    const watch = runRota(["watch", "--session", "user:42", "--after", "0", "--json"], {
      environment: { ROTA_URL: chat.server.url },
    });
    await eventually(() => watch.stdout().split("task.started").length === 3, "the events");
    const events = watch
      .stdout()
      .trim()
      .split("\n")
      .map((line) => JSON.parse(line));
    expect(new Set(events.map(({ sessionKey }) => sessionKey))).toEqual(new Set(["user:42"]));
    expect(events.find(({ type }) => type === "task.cancelled")).toMatchObject({
      error: "interrupted",
      result: "",
    });
  });

  test("change a session, and refuse what is wrong with a sentence", async () => {
    const chat = await startChat();
    const set =
      "sessions user:42 --cap 3 --drop new --debounce 2s --max-concurrent 2 --tokens 70 --context-window 100";
    expect((await run(chat, set.split(" "))).stdout).toBe(
      [
        "session     user:42",
        "agent       index",
        "lane        main",
        "mode        queue",
        "at once     1 of 2, its context is full",
        "may wait    3, then the new one is refused",
        "debounce    2.0 s",
        "context     70 %",
        "generation  0",
        "running     0",
        "waiting     0",
        "",
      ].join("\n"),
    );
    const unset = await run(chat, ["sessions", "user:42", "--json", "--unset", "cap", "tokens"]);
    expect(JSON.parse(unset.stdout)).toMatchObject({ cap: 10, tokens: null, drop: "new" });
    for (const [args, code, sentence] of [
      [["sessions", "nobody"], 3, 'error: session not found: "rota sessions" lists what there is\n'],
      [["sessions", "--cap", "3"], 2, "error: name the session to change"],
      [["sessions", "--delete"], 2, "error: name the session to delete"],
      [
        ["sessions", "x", "--delete", "--cap", "3"],
        2,
        "error: --delete takes no settings: leave out the settings, or --delete",
      ],
      [
        ["sessions", "nobody", "--delete"],
        3,
        'error: session not found: "rota sessions" lists what there is\n',
      ],
      [
        ["sessions", "x", "--debounce", "2h"],
        2,
        "from 0 to 60000, not 7200000 (--debounce: also a span like 30s)\n",
      ],
      [["say", "..", "hi"], 2, "error: `key` must be 1 to 256 characters"],
      [
        ["say", "x", "hi", "--mode", "now"],
        2,
        "error: `mode` must be queue, followup, interrupt, steer or collect",
      ],
      [["say", "x"], 2, "missing required argument 'text'"],
      [["submit", "--message", "x", "--session", ".."], 2, "(--session)\n"],
    ] as const) {
      const ran = await run(chat, args);
      expect([ran.code, ran.stdout], args.join(" ")).toEqual([code, ""]);
      expect(ran.stderr).toContain(sentence);
    }
    await run(chat, ["say", "full", "one", "--agent", "slow"]);
    await run(chat, ["sessions", "full", "--cap", "1", "--drop", "new"]);
    await eventually(() => chat.program.holding().length === 1, "it to run");
    await run(chat, ["say", "full", "two"]);
    expect(await run(chat, ["say", "full", "three"])).toMatchObject({
      code: 1,
      stderr:
        'error: the session "full" has 1 waiting message, and its `cap` is 1: retry later, or raise `cap`\n',
    });
  });
});
