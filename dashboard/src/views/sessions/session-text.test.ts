import { expect, test } from "vitest";
import type { Task } from "../../../../src/client/index.ts";
import { answerIn, endIn, isListed, kindOf, saidIn, sessionHref } from "./session-text.ts";

test("the kind of a session is how its key begins", () => {
  expect(["chat:anna", "Tab:3", "schedule:7:x", "anna", ":x", "two words:x"].map(kindOf)).toEqual([
    "chat",
    "tab",
    "schedule",
    "other",
    "other",
    "other",
  ]);
});

test("sessions of schedules are listed only for who asks for them", () => {
  const keys = ["chat:anna", "schedule:7", "anna"];
  const listed = (kind?: string) => keys.filter((key) => isListed(key, kind));
  expect(listed()).toEqual(["chat:anna", "anna"]);
  expect(listed("all")).toEqual(keys);
  expect(listed("schedule")).toEqual(["schedule:7"]);
  expect(listed("other")).toEqual(["anna"]);
});

test("a key is part of an address whatever it contains", () => {
  const href = sessionHref("a&b=c #?/ü", undefined);
  expect(new URL(href, "http://x").searchParams.get("key")).toBe("a&b=c #?/ü");
  expect(sessionHref("a", "all")).toBe("/session?key=a&kind=all");
});

test("an answer is a text, or what has one", () => {
  expect(answerIn("hello")).toBe("hello");
  expect(answerIn({ text: "hello", finishReason: "stop" })).toBe("hello");
  expect([{ text: 5 }, { a: 1 }, null, 7, undefined].map(answerIn)).toEqual(Array(5).fill(undefined));
});

test("what was said is shown whole, and why there is no answer in words", () => {
  const task = (fields: Partial<Task>) => fields as Task;
  expect(saidIn(task({ message: "two\nlines" }))).toBe("two\nlines");
  expect(saidIn(task({ payload: { a: 1 } }))).toBe('{"a":1}');
  expect(endIn(task({ state: "cancelled", error: "interrupted" }))).toBe("Interrupted by a later message.");
  expect(endIn(task({ state: "failed", error: "HTTP 403" }))).toBe("HTTP 403");
  expect(endIn(task({ state: "cancelled" }))).toBe("Cancelled.");
});
