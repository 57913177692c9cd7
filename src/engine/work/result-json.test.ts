import { expect, test } from "vitest";
import { hostileValues } from "../../../test/support/hostile-values.ts";
import { checkJson } from "./result-json.ts";

function check(value: unknown, bytesMax = 1_000) {
  return checkJson("result", value, bytesMax);
}

test.each([
  [undefined, null],
  [null, null],
  [true, true],
  [1.5, 1.5],
  [Number.NaN, null],
  ["text", "text"],
  ["broken \ud800", "broken \u{fffd}"],
  [new Date(0), "1970-01-01T00:00:00.000Z"],
  [{ a: undefined, b: [undefined] }, { b: [null] }],
])("%j is kept as %j", (value, kept) => {
  expect(check(value)).toMatchObject({ ok: true, value: kept });
});

test("what cannot be JSON says why", () => {
  expect(check(10n)).toEqual({
    ok: false,
    error: "result is not JSON: Do not know how to serialize a BigInt",
  });
  expect(check({ deep: [10n] })).toMatchObject({ ok: false });
  expect(check(() => {})).toEqual({ ok: false, error: "result is not JSON: it is a function" });
  expect(check(Symbol("s"))).toEqual({ ok: false, error: "result is not JSON: it is a symbol" });
  expect(check({ toJSON: () => undefined })).toEqual({
    ok: false,
    error: "result is not JSON: it is an object",
  });
  const circle: Record<string, unknown> = {};
  circle["self"] = circle;
  expect(check(circle)).toEqual({
    ok: false,
    error: "result is not JSON: Converting circular structure to JSON",
  });
});

test.each(hostileValues())("%s is kept or says why not", (_what, value) => {
  for (const given of [value, { inside: value }]) {
    const checked = check(given);
    expect(checked.ok ? "" : checked.error).toMatch(/^$|^result is not JSON: ./);
  }
});

test("the error of a value that is too large says how large it is", () => {
  expect(check("x".repeat(998))).toMatchObject({ ok: true });
  expect(check("x".repeat(999))).toEqual({
    ok: false,
    error: "result is too large: 1001 bytes of JSON, at most 1000 are kept",
  });
  expect(check("é".repeat(600))).toMatchObject({ ok: false });
  expect(check({ list: Array(500).fill(0) })).toMatchObject({ ok: false });
});

test("a large text is written once: its JSON goes along, unless it is not the same", () => {
  const large = '"'.repeat(400);
  expect(check(large)).toMatchObject({ ok: true, value: large, text: JSON.stringify(large) });
  expect(check(`${large}\ud800`)).toEqual({ ok: true, value: `${large}\ufffd`, bytes: 401 });
});

test("the error of a value that is nested too deep says so", () => {
  const nested = (depth: number) => JSON.parse(`${"[".repeat(depth)}${"]".repeat(depth)}`);
  expect(check(nested(500), 10_000)).toMatchObject({ ok: true });
  expect(check(nested(501), 10_000)).toEqual({ ok: false, error: "result is nested deeper than 500 levels" });
  expect(check(nested(100_000), 1_000_000)).toMatchObject({ ok: false });
});

test("is a copy that the executor cannot change", () => {
  const result = { list: [1] };
  const checked = check(result);
  result.list.push(2);
  expect(checked).toMatchObject({ ok: true, value: { list: [1] } });
});

test("says about how much memory it takes", () => {
  const bytesOf = (value: unknown) => {
    const checked = checkJson("result", value, 1_048_576);
    return checked.ok ? checked.bytes : null;
  };
  expect([null, true, 7, "text", { a: 1 }].map(bytesOf)).toEqual([0, 0, 0, 4, 7]);
  expect(bytesOf(Array.from({ length: 10_000 }, () => ({})))).toBeGreaterThan(600_000);
});
