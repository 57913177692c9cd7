import { expect, test } from "vitest";
import { RotaError } from "../errors.ts";
import { boolean, changesObject, choice, filledText, json, number, object } from "./kinds.ts";
import { readChanges, readFields } from "./read-fields.ts";
import { describeField, optional, required, type Schema } from "./schema.ts";

const FIELDS = {
  title: required(filledText(), { description: "What it is called." }),
  size: optional(number({ min: 1, max: 9 }), { description: "How large it is.", default: "`3`" }),
  colour: optional(choice(["red", "green"])),
  data: optional(json()),
  retry: optional(object({ times: optional(number({ min: 0, max: 5 })), hard: optional(boolean()) })),
} as const;

const THING = {
  name: "Thing",
  noun: "thing",
  description: "A thing.",
  examples: [],
  fields: FIELDS,
  elsewhere: { cron: "a thing has no time" },
} as const satisfies Schema;

const CHANGES = { ...THING, isChanges: true } as const satisfies Schema;

function refusal(work: () => unknown): { message: string; details: unknown } {
  try {
    work();
  } catch (error) {
    if (error instanceof RotaError) return { message: error.message, details: error.details };
    throw error;
  }
  throw new Error("It was not refused.");
}

test("returns the given fields, and counts null and undefined as left out, except for JSON", () => {
  const given = { title: "a", size: null, colour: undefined, data: null, retry: { times: 2, hard: null } };
  expect(readFields(THING, given)).toEqual({ title: "a", data: null, retry: { times: 2 } });
});

test("a single fault is the message", () => {
  expect(refusal(() => readFields(THING, { title: "a", size: 10 }))).toEqual({
    message: "`size` must be an integer from 1 to 9, not 10",
    details: { field: "size" },
  });
});

test("all faults are reported together, those of objects in it with their path", () => {
  const given = { title: "a", size: "1", colour: "gren", sze: 1, retry: { times: 9, hrd: true } };
  const faults = [
    { field: "size", message: '`size` must be an integer from 1 to 9, not "1"' },
    { field: "colour", message: '`colour` must be red or green, not "gren": did you mean `green`?' },
    { field: "sze", message: "unknown field `sze`: did you mean `size`?" },
    { field: "retry.times", message: "`retry.times` must be an integer from 0 to 5, not 9" },
    { field: "retry.hrd", message: "unknown field `retry.hrd`: did you mean `retry.hard`?" },
  ];
  expect(refusal(() => readFields(THING, given))).toEqual({
    message: `the thing has 5 faults:${faults.map(({ message }) => `\n- ${message}`).join("")}`,
    details: { field: "size", faults },
  });
});

test("a required field that is missing is named, unless a misspelt name explains it", () => {
  expect(refusal(() => readFields(THING, {})).message).toBe("`title` must be a string that is not empty");
  expect(refusal(() => readFields(THING, { title: null })).details).toEqual({ field: "title" });
  expect(refusal(() => readFields(THING, { titel: "a" })).message).toBe(
    "unknown field `titel`: did you mean `title`?",
  );
});

test("the error for a name that belongs elsewhere says where", () => {
  expect(refusal(() => readFields(THING, { title: "a", cron: "* * * * *" })).message).toBe(
    "unknown field `cron`: a thing has no time",
  );
});

test("of thousands of faults the first ten are reported", () => {
  const given = Object.fromEntries(Array.from({ length: 10_000 }, (_, index) => [`field${index}`, 0]));
  const { message, details } = refusal(() => readFields(THING, given));
  expect(message).toMatch(/^the thing has at least 10 faults:\n/);
  expect((details as { faults: unknown[] }).faults).toHaveLength(10);
});

test("names of Object's own prototype are fields like any others", () => {
  expect(refusal(() => readFields(THING, { title: "a", constructor: 1 })).details).toEqual({
    field: "constructor",
  });
});

test("in changes null resets an optional field, and a required one may be left out but not null", () => {
  expect(readChanges(CHANGES, { size: null, colour: "red" })).toEqual({ size: null, colour: "red" });
  expect(refusal(() => readChanges(CHANGES, { title: null })).message).toBe(
    "`title` must be a string, not null",
  );
  const limits = { ...CHANGES, fields: { limits: optional(changesObject(FIELDS)) } } as const;
  expect(readChanges(limits, { limits: { size: null } })).toEqual({ limits: { size: null } });
});

test("a filter refuses null, which would select more than intended", () => {
  const filter = { noun: "filter", fields: { colour: FIELDS.colour }, refusesNull: true };
  expect(refusal(() => readFields(filter, { colour: null })).details).toEqual({ field: "colour" });
});

test("the description of a field ends with its default", () => {
  expect(describeField(FIELDS.size)).toBe("How large it is. Default: `3`.");
  expect(describeField(FIELDS.title)).toBe("What it is called.");
  expect(describeField(FIELDS.colour)).toBeUndefined();
});
