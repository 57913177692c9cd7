import fc from "fast-check";

/** JSON that `JSON.stringify` cannot write. */
const RAW_NUMBERS = ["1e999", "-1e999", "1e-999", "123456789012345678901234567890", "-0", "0.1e1"];

/** Stands for a raw piece of JSON until the text is written. */
interface Raw {
  readonly raw: string;
}

/** Unexpected values, for any field. */
const nasty: fc.Arbitrary<unknown> = fc.oneof(
  fc.constantFrom<unknown>(
    "",
    " ",
    "\u0000",
    "\ud800",
    "a\u0000b\ud83d",
    "🦉".repeat(300),
    "x".repeat(70_000),
    -1,
    0,
    1.5,
    1e308,
    2 ** 53,
    Number.MAX_SAFE_INTEGER,
    true,
    null,
    [],
    {},
    [[]],
    [null],
    "2026-02-30T00:00:00Z",
    "9999-12-31T23:59:59Z",
    "0000-01-01T00:00:00Z",
    "2030-01-31T09:00:00Z",
    "http://127.0.0.1:1/",
    "http://user:password@example.com/",
    "file:///etc/passwd",
    "constructor",
    "__proto__",
    "'; drop table task; --",
    "../../etc/passwd",
    "%s%n$1?1",
    "‮\u2028",
  ),
  fc.constantFrom(...RAW_NUMBERS).map((raw): Raw => ({ raw })),
  fc.jsonValue(),
  fc.string({ unit: "binary" }),
  fc.integer({ min: 1, max: 600 }).map((depth) => JSON.parse("[".repeat(depth) + "]".repeat(depth))),
);

const unknownName = fc.oneof(
  fc.constantFrom(
    "__proto__",
    "constructor",
    "toString",
    "sessionKey",
    "dependsOn",
    "key",
    "id",
    "state",
    "",
  ),
  fc.string(),
);

type Change = (value: unknown) => unknown;

/** Something wrong with one place of a value that is right: the place is found by going down `steps`. */
function spoilt(examples: readonly unknown[]): fc.Arbitrary<unknown> {
  const change: fc.Arbitrary<Change> = fc.oneof(
    {
      weight: 4,
      arbitrary: nasty.map(
        (value): Change =>
          () =>
            value,
      ),
    },
    {
      weight: 2,
      arbitrary: fc.tuple(unknownName, nasty).map(
        ([name, value]): Change =>
          (given) =>
            added(given, name, value),
      ),
    },
    { weight: 1, arbitrary: fc.constant<Change>(() => undefined) },
    { weight: 1, arbitrary: fc.constant<Change>((given) => [given]) },
    {
      weight: 1,
      arbitrary: fc.constant<Change>((given) => (Array.isArray(given) ? Array(101).fill(given[0]) : given)),
    },
  );
  return fc
    .tuple(fc.constantFrom(...examples), fc.array(fc.nat(), { maxLength: 4 }), change)
    .map(([example, steps, spoil]) => changed(example, steps, spoil));
}

function added(given: unknown, name: string, value: unknown): unknown {
  if (typeof given !== "object" || given === null) return value;
  // As JSON.parse would: a key like any other.
  const copy = Object.fromEntries(Object.entries(given));
  Object.defineProperty(copy, name, { value, enumerable: true, configurable: true, writable: true });
  return copy;
}

function changed(given: unknown, steps: readonly number[], change: Change): unknown {
  const [step, ...rest] = steps;
  const keys = typeof given === "object" && given !== null ? Object.keys(given) : [];
  const key = step === undefined ? undefined : keys[step % Math.max(keys.length, 1)];
  if (key === undefined) return change(given);
  const inner = changed((given as Record<string, unknown>)[key], rest, change);
  if (Array.isArray(given)) return given.map((value, index) => (String(index) === key ? inner : value));
  return { ...(given as object), [key]: inner };
}

/** The text of a body. */
function toJson(value: unknown): string {
  const raws: string[] = [];
  const text = JSON.stringify(value, (_key, inner) => {
    if (!isRaw(inner)) return inner;
    return `@raw:${raws.push(inner.raw) - 1}@`;
  });
  return (text ?? "").replaceAll(/"@raw:(\d+)@"/g, (_match, index) => raws[Number(index)] as string);
}

function isRaw(value: unknown): value is Raw {
  if (typeof value !== "object" || value === null || !("raw" in value)) return false;
  return Object.keys(value).length === 1 && RAW_NUMBERS.includes(value.raw as string);
}

/** Bodies of any kind: right ones, nearly right ones, other JSON, halves, bytes, and too much of everything. */
export function bodies(examples: readonly unknown[]): fc.Arbitrary<Buffer> {
  const json = fc.oneof(
    ...(examples.length === 0
      ? []
      : [
          { weight: 12, arbitrary: spoilt(examples).map(toJson) },
          { weight: 1, arbitrary: fc.constantFrom(...examples).map(toJson) },
        ]),
    { weight: 2, arbitrary: nasty.map(toJson) },
    { weight: 1, arbitrary: fc.json() },
    {
      weight: 1,
      arbitrary: fc
        .tuple(unknownName, nasty)
        .map(([name, value]) => `{${JSON.stringify(name)}:${toJson(value)}}`),
    },
  );
  return fc.oneof(
    { weight: 12, arbitrary: json.map((text) => Buffer.from(text)) },
    // Cut anywhere, also inside a character.
    {
      weight: 1,
      arbitrary: fc
        .tuple(json, fc.nat())
        .map(([text, at]) => Buffer.from(text).subarray(0, at % (text.length + 1))),
    },
    { weight: 1, arbitrary: fc.uint8Array({ maxLength: 200 }).map((bytes) => Buffer.from(bytes)) },
    { weight: 1, arbitrary: fc.constantFrom(...HUGE) },
  );
}

const HUGE = [
  `"${"x".repeat(1_048_575)}"`,
  `{"payload":"${"\\u0000".repeat(150_000)}"}`,
  `{"payload":${"[".repeat(200_000)}`,
  `{"tasks":[${'{"payload":1},'.repeat(20_000)}1]}`,
  `{${Array.from({ length: 20_000 }, (_, i) => `"field${i}":${i}`).join(",")}}`,
].map((text) => Buffer.from(text));

export const contentTypes = fc.oneof(
  { weight: 8, arbitrary: fc.constant("application/json") },
  {
    weight: 1,
    arbitrary: fc.constantFrom(
      "application/json; charset=utf-8",
      "application/json; charset=utf-16",
      'application/json; boundary=x; q="',
      "text/plain",
      "application/x-www-form-urlencoded",
      "multipart/form-data",
      "application/jsonx",
      "/",
      "a/b/c",
    ),
  },
);

export const segments = fc.oneof(
  fc.constantFrom(
    "tasks",
    "v1",
    "batch",
    "stats",
    "events",
    "index",
    "tsk_01",
    "..",
    ".",
    "",
    "%00",
    "%2f",
    "%2e%2e",
    "%ff",
    "%zz",
    "a%20b",
    "*",
    ":id",
    "0",
    "-1",
    "5",
    "99999999999999999999",
    "1e3",
    "done,failed",
  ),
  fc.string({ maxLength: 10 }).map(safely),
  fc.string({ unit: "binary", maxLength: 5 }).map((text) => encodeURIComponent(text.toWellFormed())),
  fc.nat({ max: 3_000 }).map((length) => "x".repeat(length)),
);

/** Query strings with names that the route knows and names that it does not. */
export function queries(names: readonly string[]): fc.Arbitrary<string> {
  const name = fc.oneof(
    ...(names.length === 0 ? [] : [{ weight: 6, arbitrary: fc.constantFrom(...names) }]),
    { weight: 1, arbitrary: fc.constantFrom("__proto__", "constructor", "Limit", "x") },
    { weight: 1, arbitrary: segments },
  );
  return fc
    .array(
      fc.tuple(name, segments).map((pair) => pair.join("=")),
      { maxLength: 3 },
    )
    .map((pairs) => (pairs.length === 0 ? "" : `?${pairs.join("&")}`));
}

export const headers = fc.dictionary(
  fc.constantFrom(
    "accept",
    "accept-encoding",
    "x-request-id",
    "authorization",
    "idempotency-key",
    "last-event-id",
    "range",
    "if-match",
    "if-none-match",
    "upgrade",
    "expect",
    "x-forwarded-for",
    "cookie",
  ),
  fc.oneof(fc.string({ maxLength: 20 }).map(safely), fc.constantFrom("0", "-1", "h2c", "x".repeat(2_000))),
  { maxKeys: 2 },
);

/** Only what may stand in a line of a request. */
function safely(text: string): string {
  return text.replace(/[^!-~]/g, "x").replace(/[#\s]/g, "");
}
