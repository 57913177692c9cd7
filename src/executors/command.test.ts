import { chmodSync, mkdtempSync, readFileSync, realpathSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import {
  endWithTest,
  isRunning,
  nodeProgram,
  shellProgram,
  untilEnded,
} from "../../test/support/programs.ts";
import { type RunnableExecutor, runnable, TASK_TOKEN } from "../../test/support/run-executor.ts";
import type { ExecutorConfig } from "../model/executor-config.ts";
import type { Task } from "../model/task.ts";
import { until } from "../testing/signals.ts";

const order: Partial<Task> = { kind: "instruction", instruction: "hello\nworld" };
const CAT = shellProgram("cat");

type CommandConfig = Extract<ExecutorConfig, { type: "command" }>;

function program(command: readonly string[], settings: Partial<CommandConfig> = {}): RunnableExecutor {
  return runnable({ type: "command", command, ...settings }, { environment: process.env });
}

function newFolder(): string {
  const folder = realpathSync(mkdtempSync(join(tmpdir(), "rota-command-")));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  return folder;
}

/** The numbers that a program has written to its stderr, each on a line of its own. */
async function pidsIn({ log }: RunnableExecutor, count: number): Promise<number[]> {
  await until(() => log.messages("info").length >= count, `${count} lines on stderr`);
  return log.messages("info").map((line) => endWithTest(Number(line)));
}

// --------------------------------------------------------------------------------------------- its input

test.each<[Partial<Task>, unknown]>([
  [{ kind: "instruction", instruction: "héllo\nworld" }, "héllo\nworld"],
  [{ kind: "message", message: "" }, ""],
  [{ kind: "custom", payload: { a: [1] } }, '{"a":[1]}'],
  [{ kind: "custom", payload: "text" }, '"text"'],
  [{ kind: "custom", payload: null }, "null"],
  [{ kind: "action", action: "click", ref: "e1" }, '{"action":"click","ref":"e1"}'],
])("%j is on its stdin", async (task, result) => {
  expect(await program(CAT, { result: "text" }).run(task)).toBe(result);
});

test("no shell reads its arguments", async () => {
  const source = "console.log(JSON.stringify(process.argv.slice(1)))";
  const args = ["a b", "$HOME", "; echo x", "`id`", "*", "", "-x"];
  expect(await program(nodeProgram(source, "--", ...args)).run(order)).toEqual(args);
});

test("it knows the id of the run that it is, where it is one", async () => {
  const { run } = program(nodeProgram("console.log(JSON.stringify(process.env.ROTA_REQUEST_ID ?? null))"));
  expect(await run({ ...order, requestId: "req_7" })).toBe("req_7");
  expect(await run(order)).toBeNull();
});

test("its variables are a few of Rota's, those of the configuration and of the task, and no others", async () => {
  const source = `
    const { __CF_USER_TEXT_ENCODING: _, ...variables } = process.env;
    console.log(JSON.stringify(variables));`;
  const few = { PATH: "/bin:/usr/bin", HOME: "/home/me", LANG: "C.UTF-8", TZ: "UTC", TMPDIR: "/tmp" };
  const secrets = {
    ROTA_WEBHOOK_SECRET: "whsec_x",
    DATABASE_URL: "postgres://x",
    ROTA_KEY: "rota_x",
    USER: "me",
  };
  const { run } = runnable(
    {
      type: "command",
      command: nodeProgram(source),
      env: { B: "2", TZ: "Asia/Tokyo", ROTA_TASK_ID: "no" },
      passEnv: ["A", "B", "MISSING"],
    },
    { environment: { ...few, ...secrets, A: "1", B: "1" } },
  );
  const attempts = [{ number: 1 }, { number: 2 }] as unknown as Task["attempts"];
  const task = { ...order, taskId: "tsk_7", agentId: "shell", attempts };
  expect(await run(task, undefined, "ten_1")).toEqual({
    ...few,
    TZ: "Asia/Tokyo",
    A: "1",
    B: "2",
    ROTA_TASK_ID: "tsk_7",
    ROTA_AGENT_ID: "shell",
    ROTA_TENANT: "ten_1",
    ROTA_ATTEMPT: "2",
    ROTA_TASK_TOKEN: TASK_TOKEN,
  });
});

test("it runs in the folder of the configuration", async () => {
  const folder = newFolder();
  expect(await program(shellProgram("pwd -P"), { cwd: folder }).run(order)).toBe(folder);
});

test("it need not read its input, nor wait for all of it", async () => {
  const long = { kind: "message", message: "x".repeat(1_000_000) } as const;
  expect(await program(shellProgram("echo done")).run(long)).toBe("done");
  expect(await program(shellProgram("exec <&-; sleep 0.05; echo closed")).run(long)).toBe("closed");
  expect(await program(shellProgram("head -c 3")).run(long)).toBe("xxx");
});

// ----------------------------------------------------------------------------------------------- its result

test.each<[string, CommandConfig["result"], unknown]>([
  ['{"a":1}\\n', undefined, { a: 1 }],
  ["42\\n", "auto", 42],
  ["not JSON\\n", "auto", "not JSON"],
  ["two\\nlines\\n\\n", "auto", "two\nlines\n"],
  ["windows\\r\\n", "auto", "windows"],
  ["", "auto", ""],
  ['{"a":1}\\n', "text", '{"a":1}'],
  ["[1]\\n", "json", [1]],
])("its output %j with `result` %s becomes %j", async (output, result, expected) => {
  const { run } = program(["printf", output], result === undefined ? {} : { result });
  expect(await run(order)).toEqual(expected);
});

test("where JSON is asked for, anything else is a failure", async () => {
  const failed = program(["printf", "oops\\n"], { result: "json" }).run(order);
  await expect(failed).rejects.toThrow(new Error("the program wrote no JSON: oops"));
});

test("bytes that are no text are replaced", async () => {
  expect(await program(["printf", "a\\377b"]).run(order)).toBe("a\u{fffd}b");
});

test("a mebibyte of its output is kept, and the rest does not block it", async () => {
  const source = "process.stdout.write('é'.repeat(4_000_000), () => console.error('written'))";
  const { run, log } = program(nodeProgram(source));
  const result = (await run(order)) as { truncated: boolean; text: string };
  expect(result.truncated).toBe(true);
  expect(result.text).toMatch(/^é{500000,}$/);
  expect(Buffer.byteLength(JSON.stringify(result))).toBeLessThanOrEqual(1_048_576);
  expect(log.messages("info")).toEqual(["written"]);
});

test("its stderr is logged line by line", async () => {
  const { run, log } = program(shellProgram("printf 'one\\n\\ntwo\\r\\nthr' >&2; printf 'ee' >&2; echo ok"));
  expect(await run(order)).toBe("ok");
  expect(log.messages("info")).toEqual(["one", "two", "three"]);
  expect(log.lines.map(({ fields }) => fields["stream"])).toEqual(["stderr", "stderr", "stderr"]);
});

test("long lines of its stderr are cut, and lines beyond a thousand are left out", async () => {
  const source = "console.error('x'.repeat(10_000)); for (let i = 0; i < 5_000; i++) console.error(i)";
  const { run, log } = program(nodeProgram(source));
  await run(order);
  const lines = log.messages("info");
  expect(lines).toHaveLength(1_000);
  expect(lines[0]).toBe(`${"x".repeat(2_000)}…`);
  expect(log.messages("warn")).toEqual(["wrote more than 1000 lines: the rest is left out"]);
});

// --------------------------------------------------------------------------------------------------- how it fails

test.each<[string, string]>([
  ["echo ignored; exit 3", "exit code 3"],
  ["echo 'cannot find it' >&2; exit 1", "exit code 1: cannot find it"],
  ["printf '\\n first\\nsecond \\n\\n' >&2; exit 75", "exit code 75: first\nsecond"],
  ["kill -KILL $$", "killed by signal SIGKILL"],
  ["echo 'oh no' >&2; kill -TERM $$", "killed by signal SIGTERM: oh no"],
])("%j fails the attempt with %j, and may do better the next time", async (source, message) => {
  const failed = program(shellProgram(source)).run(order);
  await expect(failed).rejects.toThrow(new Error(message));
});

test("the end of its stderr is in the error of its failure", async () => {
  const source =
    "process.stderr.write('x'.repeat(5_000) + 'é'.repeat(600) + ' the end\\n', () => process.exit(1))";
  await expect(program(nodeProgram(source)).run(order)).rejects.toThrow(
    new Error(`exit code 1: …${"é".repeat(508)} the end`),
  );
});

test("a program that is not there, or is none, will not be there the next time", async () => {
  const folder = newFolder();
  const file = join(folder, "file");
  writeFileSync(file, "#!/bin/sh\n");
  chmodSync(file, 0o644);
  const refused = async (command: string[], settings: Partial<CommandConfig> = {}) => {
    const failed = program(command, settings).run(order);
    await expect(failed).rejects.toMatchObject({ name: "PermanentError" });
    return failed.catch(({ message }) => message);
  };
  expect(await refused(["rota-no-such-program"])).toBe(
    'cannot run "rota-no-such-program": there is no such program',
  );
  expect(await refused([file])).toBe(`cannot run "${file}": it may not be executed`);
  expect(await refused([join(file, "x")])).toContain("a part of its path is no folder");
  expect(await refused(["printf"], { cwd: join(folder, "none") })).toBe(
    `cannot run "printf": there is no folder "${join(folder, "none")}"`,
  );
  expect(await refused(["printf", "x".repeat(10_000_000)])).toContain(
    "its arguments and variables are too long",
  );
});

// ----------------------------------------------------------------------------------------------------- how it ends

/** A shell with a child and a grandchild, all of which write their numbers to stderr and then wait. */
const FAMILY = shellProgram("echo $$ >&2; sh -c 'echo $$ >&2; sleep 600 & echo $! >&2; wait' & wait");

test("all that it has started ends with its signal", async () => {
  const executor = program(FAMILY);
  const stop = new AbortController();
  const failed = expect(executor.run(order, stop.signal)).rejects.toThrow("cancelled");
  const pids = await pidsIn(executor, 3);
  expect(pids.map(isRunning)).toEqual([true, true, true]);
  stop.abort(new Error("cancelled"));
  await failed;
  expect(pids.map(isRunning)).toEqual([false, false, false]);
});

test("it has time to clean up", async () => {
  const file = join(newFolder(), "cleaned");
  const source = `trap 'echo yes > "$1"; exit 0' TERM; echo $$ >&2; while :; do sleep 0.01; done`;
  const executor = program(shellProgram(source, file));
  const stop = new AbortController();
  const failed = expect(executor.run(order, stop.signal)).rejects.toThrow("cancelled");
  await pidsIn(executor, 1);
  stop.abort(new Error("cancelled"));
  await failed;
  expect(readFileSync(file, "utf8")).toBe("yes\n");
});

test("a process that ignores SIGTERM gets SIGKILL after five seconds", async () => {
  const executor = program(
    shellProgram("trap '' TERM; echo $$ >&2; sleep 600 & echo $! >&2; wait; sleep 600"),
  );
  const stop = new AbortController();
  let over = false;
  const failed = executor.run(order, stop.signal).finally(() => {
    over = true;
  });
  const expected = expect(failed).rejects.toThrow("timed out");
  const pids = await pidsIn(executor, 2);
  stop.abort(new Error("timed out"));
  await executor.clock.advance(4_900);
  expect(pids.map(isRunning)).toEqual([true, true]);
  expect(over).toBe(false);
  await executor.clock.advance(100);
  for (const pid of pids) await untilEnded(pid);
  await expected;
});

test("a program whose attempt is over before it starts is not started", async () => {
  const file = join(newFolder(), "started");
  const over = AbortSignal.abort(new Error("too late"));
  await expect(program(["touch", file]).run(order, over)).rejects.toThrow("too late");
  expect(() => readFileSync(file)).toThrow("ENOENT");
});

test("what its children still write when it has ended counts", async () => {
  expect(await program(shellProgram("(sleep 0.1; echo late) & echo now")).run(order)).toBe("now\nlate");
});

test("children that go on without it do not hold it up, and are ended", async () => {
  const executor = program(shellProgram("sleep 600 & echo $! >&2; echo done"));
  const result = executor.run(order);
  const [pid = 0] = await pidsIn(executor, 1);
  await until(() => executor.clock.pending === 1, "the wait for what is still written");
  expect(isRunning(pid)).toBe(true);
  await executor.clock.advance(1_000);
  expect(await result).toBe("done");
  await untilEnded(pid);
});

test("children that write nowhere are ended, too", async () => {
  const executor = program(shellProgram("sleep 600 >/dev/null 2>&1 & echo $! >&2; echo done"));
  expect(await executor.run(order)).toBe("done");
  const [pid = 0] = await pidsIn(executor, 1);
  await untilEnded(pid);
});

test("children that have left do not hold it up", async () => {
  const source = `
    const { spawn } = require("node:child_process");
    const child = spawn("sleep", ["600"], { detached: true, stdio: "inherit" });
    console.error(child.pid);
    console.log("done");
    child.unref();`;
  const executor = program(nodeProgram(source));
  const result = executor.run(order);
  const [pid = 0] = await pidsIn(executor, 1);
  await until(() => executor.clock.pending === 1, "the wait for what is still written");
  await executor.clock.advance(1_000);
  expect(await result).toBe("done");
  expect(isRunning(pid)).toBe(true);
});

test("the usage in its output is reported", async () => {
  const usage = {
    inputTokens: 12,
    outputTokens: 3,
    contextTokens: 15,
    contextWindow: 100,
    model: "m",
    costMicros: 7,
  };
  const source = `console.log(${JSON.stringify(JSON.stringify({ text: "hi", usage }))})`;
  const json = program(nodeProgram(source));
  expect(await json.run(order)).toEqual({ text: "hi", usage });
  expect(json.usage).toEqual([usage]);
  const text = runnable(
    { type: "command", command: nodeProgram(source), result: "text" },
    { environment: process.env },
  );
  await text.run(order);
  expect(text.usage).toEqual([]);
});
