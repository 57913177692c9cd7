import { expect, test } from "vitest";
import { parseLaneInput } from "./lane-input.ts";

test("a lane has a name, what each process runs of it, and perhaps a total", () => {
  expect(parseLaneInput("crawl", { concurrency: 5 })).toEqual({ name: "crawl", concurrency: 5, total: null });
  expect(parseLaneInput("team/a:b@c.d-e_f", { concurrency: 0, total: 1 })).toEqual({
    name: "team/a:b@c.d-e_f",
    concurrency: 0,
    total: 1,
  });
  expect(parseLaneInput("main", { concurrency: 10_000_000, total: null }).total).toBeNull();
});

test.each([
  [
    "",
    { concurrency: 1 },
    "name",
    'the name of a lane is 1 to 128 of the characters A–Z a–z 0–9 . _ : @ / -, but not . or .. alone; this is ""',
  ],
  ["two words", { concurrency: 1 }, "name", 'this is "two words"'],
  ["..", { concurrency: 1 }, "name", 'alone; this is ".."'],
  ["x".repeat(129), { concurrency: 1 }, "name", "1 to 128"],
  ["a\0b", { concurrency: 1 }, "name", "characters"],
  [5, { concurrency: 1 }, "name", "this is 5"],
  ["a", undefined, "lane", 'a lane must be an object, like {"concurrency": 5}'],
  ["a", 5, "lane", "not 5"],
  ["a", [], "lane", "not an array"],
  ["a", {}, "concurrency", "`concurrency` is missing: it must be an integer from 0 to 10000000"],
  [
    "a",
    { concurrency: null },
    "concurrency",
    "`concurrency` is missing: it must be an integer from 0 to 10000000",
  ],
  ["a", { concurrency: "5" }, "concurrency", 'not "5"'],
  ["a", { concurrency: -1 }, "concurrency", "not -1"],
  ["a", { concurrency: 1.5 }, "concurrency", "not 1.5"],
  ["a", { concurrency: Number.NaN }, "concurrency", "not NaN"],
  ["a", { concurrency: 10_000_001 }, "concurrency", "not 10000001"],
  ["a", { concurrency: 1, total: 0 }, "total", "`total` must be an integer from 1 to 10000000, not 0"],
  ["a", { concurrency: 1, total: "3" }, "total", 'not "3"'],
  ["a", { concurrency: 1, totl: 3 }, "totl", "unknown field `totl`: did you mean `total`?"],
])("%j with %j is refused, naming %s", (name, input, field, sentence) => {
  let error: unknown;
  try {
    parseLaneInput(name, input);
  } catch (thrown) {
    error = thrown;
  }
  expect(error).toMatchObject({ code: "invalid_field", details: { field } });
  expect((error as Error).message).toContain(sentence);
  expect((error as Error).message).not.toContain("undefined");
});
