import { rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { serve } from "../support/http-server.ts";
import { eventually, newFolder, type ServerProcess, startServer } from "./server-process.ts";

interface Served {
  readonly server: ServerProcess;
  /** Writes the file and has it read: at once by a signal, or as it is noticed. */
  change(config: unknown, how?: "signal" | "noticed"): void;
  log(): { level: string; msg: string; [field: string]: unknown }[];
}

async function served(config: unknown, file = "rota.config.json"): Promise<Served & { folder: string }> {
  const folder = newFolder();
  const write = (values: unknown) =>
    writeFileSync(join(folder, file), typeof values === "string" ? values : JSON.stringify(values));
  write(config);
  const server = await startServer({ folder });
  return {
    server,
    folder,
    change(values, how = "signal") {
      write(values);
      if (how === "signal") server.kill("SIGHUP");
    },
    log: () =>
      server
        .stderr()
        .split("\n")
        .filter((line) => line.endsWith("}"))
        .map((line) => JSON.parse(line)),
  };
}

async function stats(server: ServerProcess) {
  return (await server.ask("/scheduler/stats")).body.config;
}

async function resultOf(server: ServerProcess, input: object) {
  const { body } = await server.ask("/tasks", { json: { payload: 1, ...input } });
  let task = body;
  await eventually(async () => {
    task = (await server.ask(`/tasks/${body.taskId}`)).body;
    return ["done", "failed"].includes(task.state);
  }, "the task to end");
  return task;
}

test("limits, retention, lanes, agents and executors change while it runs, on SIGHUP", async () => {
  const { server, change, log } = await served({ scheduler: { noExecutorSec: 0 } });
  const url = await serve((_, response) => response.end("from the agent"));
  expect((await resultOf(server, { agentId: "b" })).error).toMatch(
    /^no executor for agent "b": add the agent/,
  );
  change({
    scheduler: { maxQueueSize: 50, maxPerAgent: 5, maxInflight: 6, maxPerAgentInflight: 3, resultTTLSec: 60 },
    lanes: { fresh: 2 },
    agents: { a: { executor: { type: "http", url }, lane: "fresh" } },
    executors: { custom: { type: "echo" } },
  });
  await eventually(async () => (await stats(server)).maxInflight === 6, "the new limits");
  expect(await stats(server)).toEqual({
    strategy: "fair-fifo",
    maxQueueSize: 50,
    maxPerAgent: 5,
    maxInflight: 6,
    maxPerAgentFlight: 3,
    workerCount: 4,
    resultTTL: "1m0s",
  });
  expect(await resultOf(server, { agentId: "a" })).toMatchObject({ lane: "fresh", result: "from the agent" });
  expect(await resultOf(server, { agentId: "b" })).toMatchObject({ lane: "tasks", result: 1 });
  expect(log().map(({ msg }) => msg)).toEqual([
    "reloading the configuration after SIGHUP",
    "applied the new configuration",
  ]);

  // What is 0 or left out of `scheduler` keeps its value; what is left out elsewhere is gone.
  change({ scheduler: { maxInflight: 0, maxPerAgent: 9 } });
  await eventually(async () => (await stats(server)).maxPerAgent === 9, "the next limits");
  expect(await stats(server)).toMatchObject({ maxQueueSize: 50, maxInflight: 6, resultTTL: "1m0s" });
  // It had an executor: its tasks wait for a node that has it.
  const { body } = await server.ask("/tasks", { json: { payload: 1, agentId: "a" } });
  const explained = await server.ask(`/tasks/${body.taskId}/explain`);
  expect(explained.body.reasons).toMatchObject([{ code: "no_executor" }]);
});

test("a change of the file is noticed without a signal, in YAML too", async () => {
  const { server, change } = await served("scheduler: { maxInflight: 5 }\n", "rota.config.yaml");
  expect((await stats(server)).maxInflight).toBe(5);
  change("scheduler: { maxInflight: 6 }\n", "noticed");
  await eventually(async () => (await stats(server)).maxInflight === 6, "the change to be noticed");
});

test("a broken file changes nothing and is logged once, at /health too, until it is mended", async () => {
  const { server, change, log, folder } = await served({ scheduler: { maxInflight: 5 } });
  const health = async () => (await server.ask("/health")).body.config;
  const faults = () => log().filter(({ level }) => level === "error");
  expect(await health()).toEqual({ ok: true });

  change('{"scheduler": {"maxInflight": 6, "secret": }}');
  await eventually(async () => !(await health()).ok, "the fault");
  const error =
    "the configuration has a fault: rota.config.json is not JSON: Unexpected token '}' (rota.config.json:1:44)";
  expect(await health()).toEqual({ ok: false, error });
  expect((await server.ask("/health")).status).toBe(200);
  expect((await server.ask("/ready")).status).toBe(200);
  server.kill("SIGHUP");
  await eventually(() => log().filter(({ msg }) => /SIGHUP/.test(msg)).length === 2, "the second look");

  change({ scheduler: { maxInflight: -1 }, lanes: { main: "x" } });
  await eventually(async () => (await health()).error?.includes("2 faults"), "the other fault");
  expect(faults().map(({ msg }) => msg)).toEqual([
    `the configuration is invalid and was not applied: ${error}`,
    expect.stringContaining("the configuration has 2 faults"),
  ]);
  expect((await stats(server)).maxInflight).toBe(5);

  rmSync(join(folder, "rota.config.json"));
  server.kill("SIGHUP");
  await eventually(async () => (await health()).error?.includes("is gone"), "the file to be missed");

  change({ scheduler: { maxInflight: 7 } });
  await eventually(async () => (await health()).ok, "the file to be right again");
  expect((await stats(server)).maxInflight).toBe(7);
  expect(log().at(-1)).toMatchObject({ level: "info", msg: "the configuration is valid again" });
});

test("what needs a restart is logged once for each change", async () => {
  const { server, change, log } = await served({});
  const warnings = () => log().filter(({ level }) => level === "warn");
  const other = {
    server: { host: "::1", port: 1 },
    ui: { enabled: false },
    storage: "sqlite:other.db",
    scheduler: { enabled: false, strategy: "priority-fifo", workerCount: 9 },
  };
  change(other);
  await eventually(() => warnings().length === 3, "the warnings");
  change(other);
  change({ ...other, scheduler: { ...other.scheduler, maxPerAgent: 7 } });
  await eventually(async () => (await stats(server)).maxPerAgent === 7, "what can change");
  // The port and the storage are set by flags, which stay what they were.
  expect(warnings().map(({ msg }) => msg)).toEqual([
    "`scheduler.enabled`, `scheduler.strategy`, `scheduler.workerCount` changed, which takes effect when Rota is started again",
    "`server` changed, which takes effect when Rota is started again",
    "`ui` changed, which takes effect when Rota is started again",
  ]);
  expect(await stats(server)).toMatchObject({ strategy: "fair-fifo", workerCount: 4 });
  expect((await server.ask("/tasks", { json: { payload: 1 } })).status).toBe(202);
});

test("the log says what came of a SIGHUP, also when nothing did", async () => {
  const { server, change, log } = await served({ scheduler: { maxInflight: 5 } });
  /** The log from the signal to the last line that it causes. */
  const logged = async (what: unknown, last: RegExp) => {
    const before = log().length;
    const lines = () => log().slice(before + 1);
    change(what);
    await eventually(() => lines().some(({ msg }) => last.test(msg)), `${last} in the log`);
    return lines().map(({ level, msg }) => [level, msg]);
  };
  const broken =
    "the configuration has a fault: rota.config.json is empty: write {} if nothing is to be configured";
  expect(await logged({ scheduler: { maxInflight: 5 } }, /has not changed/)).toEqual([
    ["info", "the configuration has not changed"],
  ]);
  expect(await logged({ scheduler: { maxInflight: 6 } }, /applied the new/)).toEqual([
    ["info", "applied the new configuration"],
  ]);
  expect(log().at(-1)).toMatchObject({ changed: ["scheduler.maxInflight"] });
  expect(await logged("", /is invalid/)).toEqual([
    ["error", `the configuration is invalid and was not applied: ${broken}`],
  ]);
  // The sentence is there once, and without a stack.
  expect(log().at(-1)).not.toHaveProperty("error");
  expect(await logged("", /still invalid/)).toEqual([
    ["warn", `the configuration is still invalid and was not applied: ${broken}`],
  ]);
  expect(await logged({ scheduler: { maxInflight: 6 } }, /valid again/)).toContainEqual([
    "info",
    "the configuration is valid again",
  ]);
  expect(
    await logged({ scheduler: { maxInflight: 6, workerCount: 9 } }, /^these options change/),
  ).toContainEqual(["info", "these options change only at the next start"]);
  server.kill("SIGTERM");
  await server.ended;
});

test("SIGHUP at any moment ends nothing", async () => {
  const { server } = await served({});
  for (let n = 0; n < 20; n++) server.kill("SIGHUP");
  expect((await server.ask("/ready")).status).toBe(200);
  server.kill("SIGTERM");
  server.kill("SIGHUP");
  expect(await server.ended).toEqual({ code: 0, signal: null });
});

test("the level of the log changes while it runs", async () => {
  const { server, change, log } = await served({ log: { level: "warn" } });
  change({ log: { level: "debug" } });
  await eventually(
    () => log().some(({ msg }) => msg === "the log has the level debug from now on"),
    "the level",
  );
  // SIGHUP logs a line, which was below the log level when it came.
  expect(log().map(({ msg }) => msg)).toEqual(["the log has the level debug from now on"]);
  server.kill("SIGHUP");
  await eventually(() => log().some(({ msg }) => msg.includes("has not changed")), "an answer");
});
