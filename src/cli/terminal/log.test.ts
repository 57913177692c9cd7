import { stripVTControlCharacters } from "node:util";
import { expect, test } from "vitest";
import { Terminal } from "../../../test/support/terminal.ts";
import { ConnectionError } from "../../client/index.ts";
import { createLog } from "./log.ts";

function terminalLog(level: "debug" | "info" | "warn" | "error" | "silent" = "info") {
  const terminal = new Terminal();
  const log = createLog({ level, stream: terminal.streams.stdout });
  return { log, lines: () => stripVTControlCharacters(terminal.written).split("\n").slice(0, -1) };
}

test("in a terminal a line is for people: the time, the level, the sentence and the fields", () => {
  const { log, lines } = terminalLog();
  log.child({ taskId: "tsk_1" }).warn({ error: "no answer", tries: 2, lanes: ["a"] }, "an attempt failed");
  const [line] = lines();
  expect(line).toMatch(
    /^\d\d:\d\d:\d\d warn {2}an attempt failed {2}taskId=tsk_1 {2}error="no answer" {2}tries=2 {2}lanes=\["a"\]$/,
  );
});

test("what others wrote cannot control the terminal or add a line", () => {
  const { log, lines } = terminalLog();
  log.warn({ error: "\u001b[2J\u202eboom\nforged line" }, "an \u001b[31mattempt failed");
  expect(lines()).toHaveLength(1);
  expect(lines()[0]).not.toMatch(/\u202e/);
  expect(lines()[0]).toContain('error="�[2J�boom forged line"');
});

test("an error shows where it came from, a warning does not, and what holds itself is no trouble", () => {
  const { log, lines } = terminalLog();
  log.warn({ error: new Error("boom") }, "expected");
  expect(lines()).toHaveLength(1);
  log.error({ error: new Error("boom") }, "unexpected");
  expect(lines()[2]).toMatch(/^ +at .*log\.test\.ts/);
  const away = new ConnectionError("cannot reach Rota", {
    url: "http://127.0.0.1:1",
    mayHaveHappened: false,
  });
  log.error({ error: away }, "the server refuses this worker");
  expect(lines().at(-1)).toContain('error="cannot reach Rota"');
  const ring: { self?: unknown } = {};
  ring.self = ring;
  log.info({ ring }, "still there");
  expect(lines().at(-1)).toContain("still there  ring=[object]");
});

test("the level holds for children, too, also when it changes after they were made", () => {
  const { log, lines } = terminalLog("warn");
  const child = log.child({ a: 1 });
  child.info({}, "one");
  log.level = "debug";
  child.debug({}, "two");
  log.level = "silent";
  child.error({}, "three");
  expect([log.level, lines().length]).toEqual(["silent", 1]);
  expect(lines()[0]).toContain("debug two  a=1");
});
