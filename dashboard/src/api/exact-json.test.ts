import { expect, test } from "vitest";
import { isExact, lostNumber, parseExactly } from "./exact-json.ts";

test.each([
  '{"n":9007199254740993}',
  "[1e400,-1e400,1e-400]",
  '{"a":[{"b":0.1000000000000000055511151231257827}]}',
  "123456789012345678901234567890",
  '{"n":1,"x":0.1,"text":"9007199254740993 1e400"}',
])("%s is written as it was read", (text) => {
  expect(JSON.stringify(parseExactly(text))).toBe(text);
});

test("numbers that JavaScript has are numbers, and all else is as it is", () => {
  expect(parseExactly('{"n":9007199254740991,"x":0.30000000000000004,"y":1.50,"z":1e3,"o":0.0}')).toEqual({
    n: 9_007_199_254_740_991,
    x: 0.30000000000000004,
    y: 1.5,
    z: 1_000,
    o: 0,
  });
  expect(isExact(parseExactly("9007199254740993"))).toBe(true);
  for (const value of [1, "1", null, { rawJSON: "1" }, [1]]) expect(isExact(value)).toBe(false);
  expect(() => parseExactly('{"n":9007199254740993')).toThrow(SyntaxError);
});

test("the first number that would lose digits is named", () => {
  expect(lostNumber('{"a":1,"b":[9007199254740993,1e400]}')).toBe("9007199254740993");
  expect(lostNumber('{"a":1e400}')).toBe("1e400");
  expect(lostNumber('{"a":1e3,"b":"9007199254740993"}')).toBeUndefined();
});
