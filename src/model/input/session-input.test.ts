import { describe, expect, test } from "vitest";
import { parseMessageRequest, parseSessionChanges, parseSessionMessage } from "./session-input.ts";

describe("a message", () => {
  test("has its text, and no values for the other fields", () => {
    expect(parseSessionMessage({ message: " hi " })).toEqual({
      message: " hi ",
      agent: undefined,
      lane: undefined,
      mode: null,
      maxConcurrent: null,
      stop: null,
    });
  });

  test.each([
    ["/stop", "oldest"],
    ["\n /stop ", "oldest"],
    ["/stopall", "all"],
    ["/stop all", null],
    ["/Stop", "oldest"],
    ["/STOPALL@bot", "all"],
    ["/stop@", null],
    ["please /stop", null],
    ["constructor", null],
  ])("%j asks to stop %j", (message, stop) => {
    expect(parseSessionMessage({ message }).stop).toBe(stop);
  });

  test("over HTTP has the options of the response", () => {
    expect(parseMessageRequest({ message: "hi", wait: true })).toEqual({
      input: { message: "hi" },
      wait: true,
      cancelOnDisconnect: false,
    });
    expect(() => parseMessageRequest({ message: "hi", waits: true })).toThrow("did you mean `wait`?");
    expect(() => parseMessageRequest("hi")).toThrow(
      'a message must be an object, like {"message": "hello"}, not "hi"',
    );
    expect(() => parseMessageRequest(undefined)).toThrow(/like \{"message": "hello"\}$/);
  });
});

test("changes contain the given fields, and null resets one", () => {
  expect(parseSessionChanges({})).toEqual({});
  expect(parseSessionChanges({ agentId: "a", lane: null, cap: undefined, tokens: 0 })).toEqual({
    agent: "a",
    lane: null,
    tokens: 0,
  });
  expect(parseSessionChanges({ agentId: null })).toEqual({ agent: null });
});
