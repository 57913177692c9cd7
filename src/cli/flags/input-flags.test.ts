import { Command } from "commander";
import { expect, test } from "vitest";
import {
  anyObject,
  boolean,
  choice,
  filledText,
  number,
  object,
  priority,
  time,
} from "../../model/input/kinds.ts";
import { conversationId, secondsOrTime } from "../../model/input/schedule-schema.ts";
import { optional, required } from "../../model/input/schema.ts";
import { flagsOfFields, inputOfFlags, withInputOptions } from "./input-flags.ts";

const NOW = Date.parse("2026-03-08T12:00:00Z");

const FIELDS = {
  name: required(filledText(), { description: "What it is called.", flag: "--name <name>" }),
  runAt: optional(time(), { description: "Earliest start.", flag: "--run-at <time>" }),
  waitMs: optional(number({ min: 0, max: 9, unit: "milliseconds" }), {
    description: "How long it waits.",
    default: "`0`",
    flag: "--wait-at-most <span>",
  }),
  late: optional(number({ min: 0, max: 9, unit: "seconds" }), { flag: "--late <span>" }),
  until: optional(secondsOrTime(), { flag: "--until <time>" }),
  priority: optional(priority(), { flag: "--priority <priority>" }),
  conversation: optional(conversationId(), { flag: "--conversation <id>" }),
  mode: optional(choice(["a", "b"]), { flag: "--mode <mode>" }),
  more: optional(anyObject(), { flag: "--more <json>" }),
  quick: optional(boolean(), { description: "URL or not.", flag: "--quick" }),
  retry: optional(
    object({
      times: optional(number({ min: 0, max: 9 }), { flag: "--retries <number>" }),
      size: optional(number({ min: 0, max: 9 }), { flag: "--retry-size <number>" }),
    }),
  ),
  hidden: optional(filledText(), { description: "It has no flag." }),
} as const;

test("a flag is described as its field is, with what else it takes and its default", () => {
  const options = withInputOptions(new Command(), FIELDS).options.map(({ flags, description, mandatory }) => [
    flags,
    description,
    mandatory,
  ]);
  expect(options.slice(0, 3)).toEqual([
    ["--name <name>", "what it is called", true],
    ["--run-at <time>", "earliest start; RFC 3339, also a span from now like 10m", false],
    ["--wait-at-most <span>", "how long it waits; also a span like 30s (default: 0)", false],
  ]);
  expect(options.find(([flags]) => flags === "--quick")?.[1]).toBe("URL or not");
  expect(options.map(([flags]) => flags)).not.toContain("--hidden");
});

test("in a change nothing is required, and no default is promised", () => {
  const [name, , wait] = withInputOptions(new Command(), FIELDS, { isChange: true }).options;
  expect(name?.mandatory).toBe(false);
  expect(wait?.description).toBe("how long it waits; also a span like 30s");
});

test("flags become fields by the form of the field", () => {
  const flags = {
    name: "5",
    runAt: "10m",
    waitAtMost: "2s",
    late: "2h",
    until: "1900000000",
    priority: "5",
    conversation: "42",
    mode: "a",
    more: '{"x":1}',
    quick: false,
    retries: "2",
    retrySize: "3",
    json: true,
  };
  expect(inputOfFlags(FIELDS, flags, NOW)).toEqual({
    name: "5",
    runAt: "2026-03-08T12:10:00.000Z",
    waitMs: 2_000,
    late: 7_200,
    until: 1_900_000_000,
    priority: 5,
    conversation: "42",
    mode: "a",
    more: { x: 1 },
    quick: false,
    retry: { times: 2, size: 3 },
  });
  expect(inputOfFlags(FIELDS, { priority: "high" }, NOW)).toEqual({ priority: "high" });
  expect(() => inputOfFlags(FIELDS, { more: "{" }, NOW)).toThrow("--more must be JSON");
});

test("messages name a flag that is called otherwise than its field or takes more", () => {
  expect(flagsOfFields(FIELDS)).toEqual({
    runAt: "--run-at: also a span from now like 10m",
    waitMs: "--wait-at-most: also a span like 30s",
    late: "--late: also a span like 2h",
    until: "--until: also a span from now like 30d",
    "retry.times": "--retries",
    "retry.size": "--retry-size",
  });
});
