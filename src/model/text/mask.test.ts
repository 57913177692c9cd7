import { expect, test } from "vitest";
import { cpuMsOf } from "../../../test/support/cpu-time.ts";
import { hideValues, hideValuesInJson } from "./mask.ts";

test("masks secrets anywhere in a text, the longest first, and not short words", () => {
  const secrets = ["sk-12345", "sk-12345-and-more", "short", ""];
  expect(hideValues("sk-12345-and-more, sk-12345 and short", secrets)).toBe("…, … and short");
});

test("searches for a bounded number of secrets", () => {
  const many = Array.from({ length: 100_000 }, (_, index) => `secret-${index}`);
  const text = "x".repeat(4_096);
  const cpuMs = cpuMsOf(() => expect(hideValues(text, many)).toBe(text));
  expect(cpuMs).toBeLessThan(1_000);
});

test("hides a secret as JSON and URLs write it", () => {
  const secret = '-----BEGIN\nab"c/d\\e';
  const once = JSON.stringify({ key: secret });
  expect(hideValues(once, [secret])).toBe('{"key":"…"}');
  expect(hideValues(JSON.stringify({ body: once }), [secret])).toBe('{"body":"{\\"key\\":\\"…\\"}"}');
  expect(hideValues(`/?key=${encodeURIComponent(secret)}&x=1`, [secret])).toBe("/?key=…&x=1");
});

test.each([
  ["HTTP 500: my sk-0123-45…", "HTTP 500: my …"],
  ["HTTP 500: my sk-0123-45", "HTTP 500: my sk-0123-45"],
  ["exit code 1: …3-456789 was refused", "exit code 1: … was refused"],
  ["exit code 1: …sk-0123-456789…", "exit code 1: ………"],
  ["no ask…", "no ask…"],
  ["", ""],
])("masks the rest of a cut secret in %j", (text, shown) => {
  expect(hideValues(text, ["sk-0123-456789"])).toBe(shown);
});

test("hides a part of a secret that repeats itself, in bounded time", () => {
  const secret = "a".repeat(100_000);
  const cpuMs = cpuMsOf(() => {
    expect(hideValues(`x${"a".repeat(4_000)}…`, [secret])).toBe("x…");
    expect(hideValues(`${"ab".repeat(50_000)}…`, ["ab".repeat(49_000), secret])).not.toContain("abab");
  });
  expect(cpuMs).toBeLessThan(1_000);
});

test("hides secrets in every text of a JSON value, and copies nothing where there are none", () => {
  const value = JSON.parse('{"a":["my sk-0123-456789",1,null],"__proto__":{"b":"sk-0123-456789"}}');
  expect(JSON.stringify(hideValuesInJson(value, ["sk-0123-456789"]))).toBe(
    '{"a":["my …",1,null],"__proto__":{"b":"…"}}',
  );
  expect(hideValuesInJson(value, ["another secret"])).toBe(value);
});

test("masks a whole JSON value if a secret could be a part of it", () => {
  expect(hideValuesInJson({ a: [1234, 5678] }, ["1234,5678"])).toBe("…");
});

test("looks for every form of a hundred secrets", () => {
  const secrets = Array.from({ length: 100 }, (_, index) => `"secret"\n${index}${"x".repeat(index % 7)}`);
  const text = [...secrets, JSON.stringify(secrets)].join(" ");
  expect(hideValues(text, secrets)).not.toContain("secret");
});

test("hides secrets in large results of many texts in bounded time", () => {
  const secrets = Array.from({ length: 100 }, (_, index) => `"${index}" ${"secret ".repeat(1_000)}`);
  const answer = [...Array.from({ length: 100_000 }, (_, index) => `text ${index}`), secrets[0]];
  const cpuMs = cpuMsOf(() =>
    expect(hideValuesInJson(answer, secrets)).toEqual([...answer.slice(0, -1), "…"]),
  );
  expect(cpuMs).toBeLessThan(2_000);
});
