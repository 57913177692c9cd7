import { describe, expect, test } from "vitest";
import { AGENT } from "../../../src/model/input/agent-schema.ts";
import { BATCH } from "../../../src/model/input/batch-input.ts";
import { SCHEDULE } from "../../../src/model/input/schedule-schema.ts";
import { MESSAGE_REQUEST } from "../../../src/model/input/session-input.ts";
import { TASK } from "../../../src/model/input/task-schema.ts";
import { describeApi } from "../../../src/server/openapi.ts";
import { FormError, faultsOf, formFields, inputOf, type Schemas, textOfValue } from "./form-schema.ts";

const INPUTS = {
  NewTask: TASK,
  NewBatch: BATCH,
  NewAgent: AGENT,
  NewSchedule: SCHEDULE,
  SessionMessage: MESSAGE_REQUEST,
};

const SCHEMAS: Schemas = JSON.parse(String(await describeApi())).components.schemas;

function formOf(values: Record<string, string>): FormData {
  const data = new FormData();
  for (const [name, value] of Object.entries(values)) data.set(name, value);
  return data;
}

const kinds = (name: keyof typeof INPUTS) =>
  Object.fromEntries(formFields(SCHEMAS, name).map((field) => [field.name, field.kind]));

describe("the fields of a form", () => {
  test("are all that the API takes, each of its kind", () => {
    for (const [name, { fields }] of Object.entries(INPUTS)) {
      expect(formFields(SCHEMAS, name).map((field) => field.name)).toEqual(Object.keys(fields));
    }
    expect(kinds("NewTask")).toMatchObject({
      message: "text",
      params: "json",
      payload: "json",
      priority: "text",
      deadline: "time",
      timeout: "number",
      retryPolicy: "group",
      dependsOn: "list",
      preemptible: "boolean",
    });
    expect(kinds("NewBatch")).toMatchObject({ tasks: "json", parallelism: "number" });
    expect(kinds("NewAgent")).toMatchObject({ id: "text", executor: "variants", writs: "boolean" });
    expect(kinds("NewSchedule")).toMatchObject({
      schedule: "text",
      overlap: "choice",
      retry: "group",
      until: "text",
    });
  });

  test("have their description, bounds, choices, and whether they are required", () => {
    const [message] = formFields(SCHEMAS, "SessionMessage");
    expect(message).toMatchObject({ name: "message", isRequired: true });
    const parallelism = formFields(SCHEMAS, "NewBatch").find(({ name }) => name === "parallelism");
    expect(parallelism).toMatchObject({ isRequired: false, min: 1, max: 10 });
    expect(parallelism?.description).toContain("How many of the tasks run at once");
    const require = formFields(SCHEMAS, "NewAgent").find(({ name }) => name === "require");
    expect(require).toMatchObject({ isRequired: false, fields: [{ name: "labels", isRequired: false }] });
    const executor = formFields(SCHEMAS, "NewAgent").find(({ name }) => name === "executor");
    expect(executor?.choices).toEqual(expect.arrayContaining(["echo", "http", "openai"]));
    expect(executor?.fields.find(({ name }) => name === "http")?.fields).toMatchObject([
      { name: "url", kind: "text", isRequired: true },
      { name: "headers", kind: "json", isRequired: false },
    ]);
    const priority = formFields(SCHEMAS, "NewTask").find(({ name }) => name === "priority");
    expect(priority).toMatchObject({ choices: ["critical", "high", "normal", "low"] });
    expect(priority?.description).toContain("Default: `normal`.");
  });
});

describe("an object with a type", () => {
  const fields = formFields(SCHEMAS, "NewAgent");
  const executor = { type: "http", headers: { a: "b" }, url: "https://agents.example.com" };
  const filled = {
    "executor.type": "http",
    "executor.url": executor.url,
    "executor.headers": JSON.stringify(executor.headers, null, 2),
  };

  test("has the fields of its type", () => {
    expect(inputOf(fields, formOf({ id: "a", ...filled }))).toEqual({ id: "a", executor });
    expect(inputOf(fields, formOf({ id: "a", "executor.type": "echo" }))).toEqual({
      id: "a",
      executor: { type: "echo" },
    });
    expect(inputOf(fields, formOf({ id: "a", "executor.type": "" }))).toEqual({ id: "a" });
  });

  test("is sent only if it changed, and then as a whole", () => {
    const before = { executor };
    expect(inputOf(fields, formOf(filled), before)).toEqual({});
    expect(inputOf(fields, formOf({ ...filled, "executor.url": "https://b.example" }), before)).toEqual({
      executor: { ...executor, url: "https://b.example" },
    });
    expect(inputOf(fields, formOf({ "executor.type": "" }), before)).toEqual({ executor: null });
  });
});

describe("the input of a form", () => {
  const fields = formFields(SCHEMAS, "NewTask");

  test("has what is filled in, each of its type", () => {
    const data = formOf({
      instruction: "Say hello",
      agentId: "",
      priority: "2",
      llmConfig: '{"model":"small"}',
      timeout: "5000",
      preemptible: "true",
      dependsOn: "tsk_1, tsk_2",
      runAt: "2030-01-31T09:00:00",
      "retryPolicy.maxRetries": "3",
      metadata: " ",
    });
    expect(inputOf(fields, data)).toEqual({
      instruction: "Say hello",
      priority: 2,
      llmConfig: { model: "small" },
      timeout: 5_000,
      preemptible: true,
      dependsOn: ["tsk_1", "tsk_2"],
      runAt: new Date("2030-01-31T09:00:00").toISOString(),
      retryPolicy: { maxRetries: 3 },
    });
    expect(inputOf(fields, formOf({ priority: "high" }))).toEqual({ priority: "high" });
  });

  test("of changes has what differs: null for what was emptied, and groups whole", () => {
    const before = {
      lane: "main",
      timeout: 5_000,
      retryPolicy: { maxRetries: 1, backoffMs: 500 },
      metadata: { a: 1 },
    };
    const unchanged = formOf({
      lane: "main",
      timeout: "5000",
      "retryPolicy.maxRetries": "1",
      "retryPolicy.backoffMs": "500",
      metadata: JSON.stringify({ a: 1 }, null, 2),
    });
    expect(inputOf(fields, unchanged, before)).toEqual({});
    unchanged.set("lane", "");
    unchanged.set("retryPolicy.maxRetries", "2");
    expect(inputOf(fields, unchanged, before)).toEqual({
      lane: null,
      retryPolicy: { maxRetries: 2, backoffMs: 500 },
    });
    expect(inputOf(fields, formOf({}), before)).toEqual({});
  });

  test("that is not JSON names all fields that are not", () => {
    try {
      inputOf(fields, formOf({ params: "{", metadata: "[", message: "hi" }));
      expect.unreachable();
    } catch (error) {
      expect(error).toBeInstanceOf(FormError);
      expect(faultsOf(error).map(({ field }) => field)).toEqual(["params", "metadata"]);
    }
  });

  test("does not lose digits of a number in silence", () => {
    const refused = () => inputOf(fields, formOf({ payload: '{"id": 12345678901234567890}' }));
    expect(refused).toThrow(
      "`payload` has a number that would not be kept as it is, 12345678901234567890: write it as text",
    );
    expect(() => inputOf(fields, formOf({ payload: "[1e400]" }))).toThrow("1e400");
    const given = inputOf(fields, formOf({ payload: '{"id": 9007199254740991, "x": 0.1}' }));
    expect(given).toEqual({ payload: { id: 9_007_199_254_740_991, x: 0.1 } });
  });

  test("shows a time as the browser's own, and it comes back as the same moment", () => {
    const runAt = fields.find(({ name }) => name === "runAt");
    const text = runAt && textOfValue(runAt, "2030-01-31T09:00:00.000Z");
    expect(new Date(text ?? "").toISOString()).toBe("2030-01-31T09:00:00.000Z");
  });
});

test("the faults of the server's errors: all of them, the one it names, or none", () => {
  const faults = [{ field: "a", message: "`a` is wrong" }];
  expect(faultsOf({ message: "x", details: { field: "a", faults } })).toEqual(faults);
  expect(faultsOf({ message: "`b` is wrong", details: { field: "b" } })).toEqual([
    { field: "b", message: "`b` is wrong" },
  ]);
  expect(faultsOf(new Error("lost"))).toEqual([]);
});
