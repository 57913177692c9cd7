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
    const parsed = { sessionKey: null, conversationId: null, writs: [{ kind: "list" }] };
    expect(parseWritInput({ agent: "research", text: "/schedule list" })).toEqual({
      ...parsed,
      agent: "research",
    });
    expect(parseWritInput({ text: "so:\n/schedule list" })).toEqual({ ...parsed, agent: "index" });
  });

  test("may say in which session and conversation they were written", () => {
    const text = "/schedule list";
    expect(parseWritInput({ text, session_key: "chat:42", conversation_id: 7 })).toMatchObject({
      sessionKey: "chat:42",
      conversationId: "7",
    });
    expect(parseWritInput({ text, session_key: null, conversation_id: "c" })).toMatchObject({
      sessionKey: null,
      conversationId: "c",
    });
  });

  test("without any writ return one that says what was expected", () => {
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
    [{ text: "/schedule list", session_key: 5 }, "session_key"],
    [{ text: "/schedule list", conversation_id: 1.5 }, "conversation_id"],
    [{ text: "/schedule list", conversation_id: "" }, "conversation_id"],
    [{ text: "/schedule list", agent: "" }, "agent"],
    [{ text: "/schedule list", agentId: "a" }, "agentId"],
  ])("are refused as %j, by name", (input, field) => {
    expect(errorOf(input)).toMatchObject({ code: "invalid_field", details: { field } });
  });

  test("have a limit on their number and length", () => {
    expect(parseWritInput({ text: "/schedule list\n".repeat(50) }).writs).toHaveLength(50);
    expect(parseWritInput({ text: "x".repeat(65_536) }).writs).toHaveLength(1);
  });
});
