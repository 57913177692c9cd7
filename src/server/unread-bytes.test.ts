import { expect, test } from "vitest";
import { UnreadBytes } from "./unread-bytes.ts";

test("no key takes the room of all others, and each has its own back once its answers are read", () => {
  const unread = new UnreadBytes({ max: 100, maxEach: 40 });
  const read = unread.add("a", 30);
  expect(() => unread.add("a", 11)).toThrow("the unread responses of this API key");
  unread.add("a", 10);
  expect(() => unread.check("a")).toThrow("may take 40 bytes");
  unread.check("b");
  unread.add("b", 40);
  read();
  read();
  expect(unread.all).toBe(50);
  unread.check("a");
  unread.add("a", 30);
});

test("all keys together have an end of their room", () => {
  const unread = new UnreadBytes({ max: 100, maxEach: 40 });
  for (const key of ["a", "b", null]) unread.add(key, 30);
  for (const key of ["c", null]) {
    expect(() => unread.add(key, 11)).toThrow("the unread responses of all callers");
  }
});

test("what is larger than all the room is answered when it is alone", () => {
  const unread = new UnreadBytes({ max: 100, maxEach: 40 });
  const read = unread.add("a", 500);
  expect(() => unread.add("b", 1)).toThrow();
  read();
  unread.add("b", 500);
});
