import { describe, expect, test } from "vitest";
import { parseWritInput } from "./writ-input.ts";

function errorOf(input: unknown): unknown {
  try {
    parseWritInput(input);
  } catch (error) {
    return error;
  }
  throw new Error("was to be refused");
}

describe("writs", () => {
  test("are those of the agent that is named, else of index", () => {
    const list = [{ kind: "list" }];
    expect(parseWritInput({ agent: "research", text: "/schedule list" })).toEqual({
      agent: "research",
      writs: list,
    });
    expect(parseWritInput({ text: "so:\n/schedule list" })).toEqual({ agent: "index", writs: list });
  });

  test("that are none at all are one that says what was expected", () => {
    for (const text of ["", "hello", "```\n```"]) {
      expect(parseWritInput({ text }).writs).toEqual([
        { kind: "invalid", text: text.trim(), reason: expect.stringContaining("/schedule") },
      ]);
    }
  });

  test.each<[unknown, string]>([
    [null, "text"],
    ["/schedule list", "text"],
    [[], "text"],
    [{}, "text"],
    [{ text: 5 }, "text"],
    [{ text: null }, "text"],
    [{ text: "x".repeat(65_537) }, "text"],
    [{ text: "/schedule list\n".repeat(51) }, "text"],
    [{ text: "/schedule list", agent: "two\nlines" }, "agent"],
    [{ text: "/schedule list", agent: "" }, "agent"],
    [{ text: "/schedule list", agentId: "a" }, "agentId"],
  ])("are refused as %j, by name", (input, field) => {
    expect(errorOf(input)).toMatchObject({ code: "invalid_field", details: { field } });
  });

  test("may be as many and as long as is said", () => {
    expect(parseWritInput({ text: "/schedule list\n".repeat(50) }).writs).toHaveLength(50);
    expect(parseWritInput({ text: "x".repeat(65_536) }).writs).toHaveLength(1);
  });
});
