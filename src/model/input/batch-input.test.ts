import { describe, expect, test } from "vitest";
import { finished } from "../../../test/support/finished.ts";
import { RotaError } from "../errors.ts";
import { Redactor } from "../redactor.ts";
import { DEFAULT_RETRY_POLICY } from "../retry-policy.ts";
import { parseBatchSteps } from "./batch-input.ts";
import { parseTaskInput, type TaskDefaults } from "./task-input.ts";

const defaults: TaskDefaults = {
  now: 0,
  timeoutMs: 120_000,
  timeoutMaxMs: 600_000,
  retryPolicy: DEFAULT_RETRY_POLICY,
  hasLane: () => true,
  maxQueuedOf: () => null,
  sessionMaxConcurrent: 1,
  redactor: new Redactor([]),
  laneOf: () => undefined,
};
const tasks = [{ payload: 1 }];

function parseBatch(input: unknown, known: TaskDefaults) {
  return finished(parseBatchSteps(input, known));
}

function refusal(call: () => unknown): { error: string; field: unknown } {
  try {
    call();
  } catch (error) {
    expect(error).toBeInstanceOf(RotaError);
    const { code, message, details } = error as RotaError;
    expect(code).toBe("invalid_field");
    return { error: message, field: details?.["field"] };
  }
  throw new Error("it was accepted");
}

describe("a batch", () => {
  test("without options has no limit and no callback", () => {
    expect(parseBatch({ tasks }, defaults)).toMatchObject({
      parallelism: null,
      callbackUrl: null,
      tasks: [{ agent: "index", callbackUrl: null, preemptible: false }],
    });
  });

  test("without tasks is refused with what to write", () => {
    const refused = (input: unknown) => refusal(() => parseBatch(input, defaults)).error;
    expect(refused({})).toBe("`tasks` is missing: it must be an array of tasks");
    expect(refused({ tasks: "a" })).toBe('`tasks` must be an array of tasks, not "a"');
  });

  test("keeps its own callback apart from those of its tasks", () => {
    const given = {
      agentId: "a",
      callbackUrl: "https://example.com/each",
      batchCallbackUrl: "https://example.com/all",
      parallelism: 10,
      tasks: [{ payload: 1 }, { payload: 2, agentId: "b", callbackUrl: "https://example.com/one" }],
    };
    expect(parseBatch(given, defaults)).toMatchObject({
      parallelism: 10,
      callbackUrl: "https://example.com/all",
      tasks: [
        { agent: "a", callbackUrl: "https://example.com/each" },
        { agent: "b", callbackUrl: "https://example.com/one" },
      ],
    });
  });

  test.each([
    [{ parallelism: 0 }, "parallelism", "`parallelism` must be an integer from 1 to 10, not 0"],
    [{ parallelism: 11 }, "parallelism", "from 1 to 10, not 11"],
    [{ parallelism: 1.5 }, "parallelism", "must be an integer"],
    [{ parallelism: "2" }, "parallelism", 'not "2"'],
    [{ paralelism: 2 }, "paralelism", "did you mean `parallelism`?"],
    [{ batchCallbackUrl: 5 }, "batchCallbackUrl", "`batchCallbackUrl` must be a string"],
    [{ batchCallbackUrl: "ftp://example.com" }, "batchCallbackUrl", "must be an http or https URL"],
    [{ batchCallbackUrl: "https://u:p@example.com" }, "batchCallbackUrl", "must have no user or password"],
    [{ batchCallbackurl: "https://example.com" }, "batchCallbackurl", "did you mean `batchCallbackUrl`?"],
  ])("with %j is refused", (fields, field, sentence) => {
    const refused = refusal(() => parseBatch({ ...fields, tasks }, defaults));
    expect(refused.error).toContain(sentence);
    expect(refused.field).toBe(field);
  });
});

test.each(["parallelism", "batchCallbackUrl"])("a task by itself does not know `%s`", (field) => {
  const given = { payload: 1, [field]: 1 };
  expect(refusal(() => parseTaskInput(given, defaults)).field).toBe(field);
  expect(refusal(() => parseBatch({ tasks: [given] }, defaults)).error).toContain(
    `tasks[0]: unknown field \`${field}\``,
  );
});
