import { expect, test, vi } from "vitest";
import { RecordingLog } from "../../test/support/recording-log.ts";
import { RotaClient } from "../client/index.ts";
import { createRota } from "../rota.ts";
import { asLog } from "./log.ts";

test("console is a log: the sentence first, then the fields, those of children among them", () => {
  const warn = vi.spyOn(console, "warn").mockImplementation(() => {});
  const log = asLog(console);
  log.child({ taskId: "tsk_1" }).child({ attempt: 2 }).warn({ error: "boom" }, "an attempt failed");
  log.warn({}, "alone");
  expect(warn.mock.calls).toEqual([
    ["an attempt failed", { taskId: "tsk_1", attempt: 2, error: "boom" }],
    ["alone"],
  ]);
});

test("a log that has children is taken as it is", () => {
  const log = new RecordingLog();
  expect(asLog(log)).toBe(log);
});

test.each([null, "console", {}, { info() {} }, 5])("%j is no log", async (log) => {
  const sentence = "`log` must have the methods debug, info, warn and error";
  expect(() => asLog(log as never)).toThrow(sentence);
  await expect(createRota({ storage: "sqlite::memory:", log: log as never })).rejects.toThrow(sentence);
});

test("createRota and the client take console", async () => {
  const warn = vi.spyOn(console, "warn").mockImplementation(() => {});
  const rota = await createRota({ storage: "sqlite::memory:", log: console });
  rota.agent("clumsy", () => {
    throw new Error("dropped it");
  });
  await rota.start();
  const { taskId } = await rota.tasks.submit({ agentId: "clumsy", payload: 1 });
  await rota.tasks.wait(taskId);
  await rota.stop();
  expect(warn.mock.calls).toEqual([
    [
      "an attempt failed, and with it the task",
      { taskId, agentId: "clumsy", attempt: 1, error: "dropped it" },
    ],
  ]);
  expect(new RotaClient({ url: "http://127.0.0.1:1", log: console })).toBeInstanceOf(RotaClient);
});
