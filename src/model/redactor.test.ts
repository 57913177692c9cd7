import { expect, test } from "vitest";
import { cpuMsOf } from "../../test/support/cpu-time.ts";
import { Redactor } from "./redactor.ts";

const redactor = new Redactor(["password", "api.token"]);

test("masks values by their names, at any depth and in any case, and nothing else", () => {
  expect(
    redactor.json({ user: "ann", Password: "x", list: [{ password: 5, none: "password" }], password2: "y" }),
  ).toEqual({ user: "ann", Password: "…", list: [{ password: "…", none: "password" }], password2: "y" });
  expect(redactor.json({ password: { deep: ["x"] }, "api.token": true })).toEqual({
    password: "…",
    "api.token": "…",
  });
  expect(redactor.json({ password: null })).toEqual({ password: null });
});

test("copies nothing if there is nothing to mask, and searches nothing if no name is listed", () => {
  const value = { a: [{ b: 1 }], password: null };
  expect(redactor.json(value)).toBe(value);
  const untouchable = new Proxy({}, { ownKeys: () => expect.unreachable() });
  expect(new Redactor([]).json(untouchable)).toBe(untouchable);
});

test("keeps a field called __proto__ what it is", () => {
  const value = JSON.parse('{"__proto__":{"password":"x"},"password":"y"}');
  expect(JSON.stringify(redactor.json(value))).toBe('{"__proto__":{"password":"…"},"password":"…"}');
});

test("always masks the secrets of llmConfig, and their names nowhere else", () => {
  const config = { provider: "p", apiKey: "x", aws: { secretAccessKey: "y", sessionToken: "z" } };
  const shown = { provider: "p", apiKey: "…", aws: { secretAccessKey: "…", sessionToken: "…" } };
  expect(new Redactor([]).llmConfig(config)).toEqual(shown);
  expect(redactor.llmConfig({ ...config, password: "p" })).toEqual({ ...shown, password: "…" });
  expect(redactor.json({ apiKey: "x" })).toEqual({ apiKey: "x" });
});

test.each([
  ['HTTP 500: {"password":"hunter2","user":"ann"}', 'HTTP 500: {"password":"…","user":"ann"}'],
  ['{"password": "a\\"b", "x": 1}', '{"password": "…", "x": 1}'],
  ['{"password":{"a":["}"]},"x":1}', '{"password":"…","x":1}'],
  ['{"password":12,"x":null}', '{"password":"…","x":null}'],
  ['{"password":null}', '{"password":null}'],
  ['{"password":"cut in the mid', '{"password":"…"'],
  ['{\\"password\\":\\"hunter2\\"}', '{\\"password\\":\\"…\\"}'],
  [String.raw`{\\\"password\\\":\\\"hunter2\\\"}`, String.raw`{\\\"password\\\":\\\"…\\\"}`],
  ['{"password"=>"hunter2"}', '{"password"=>"…"}'],
  ["cannot open /?password=hunter2&x=1", "cannot open /?password=…&x=1"],
  ["Password: hunter2, user: ann", "Password: …, user: ann"],
  ["password: Bearer abc.def rest", "password: … rest"],
  ["{'password': 'x y'}", "{'password': '…'}"],
  ["the password is wrong, and so is mypassword=x", "the password is wrong, and so is mypassword=x"],
  ["password:", "password:"],
])("masks in the text %j", (text, shown) => {
  expect(redactor.text(text)).toBe(shown);
  expect(redactor.json(text)).toBe(shown);
});

test.each([1, 2, 3, 4])("masks whole values in JSON inside %i layers of JSON", (layers) => {
  const quoted = (value: unknown) => {
    let text = JSON.stringify(value);
    for (let layer = 1; layer < layers; layer += 1) text = JSON.stringify(text);
    return text;
  };
  for (const password of ["hunter2", 'with "quotes" in it', "at its end \\", 'both \\" of them\\\\"']) {
    expect(redactor.text(`HTTP 500: ${quoted({ password, user: "ann" })}`)).toBe(
      `HTTP 500: ${quoted({ password: "…", user: "ann" })}`,
    );
  }
});

test("takes time in proportion to the text, however often a name stands in it", () => {
  const text = 'password:"'.repeat(50_000);
  const cpuMs = cpuMsOf(() => {
    redactor.text(text);
    redactor.text(`${"password:{".repeat(50_000)}`);
    redactor.text(`password:"${"\\".repeat(500_000)}`);
    redactor.findMask("payload", "password:{".repeat(50_000));
    redactor.findMask("payload", 'password:"'.repeat(50_000));
    redactor.text(`${'password:\\"'.repeat(50_000)}`);
  });
  expect(cpuMs).toBeLessThan(2_000);
});

test("finds masks in place of secrets, and the secrets", () => {
  const payload = { a: [{ password: "…" }], other: "…" };
  expect(redactor.findMask("payload", payload)).toBe("payload.a[0].password");
  expect(redactor.findMask("payload", { other: "…" })).toBeUndefined();
  expect(new Redactor([]).findMask("llmConfig", { x: { apiKey: "…" } })).toBe("llmConfig.x.apiKey");
  expect(new Redactor([]).findMask("params", { apiKey: "…" })).toBeUndefined();
  expect(redactor.findMask("payload", redactor.json("user=ann password=hunter2 x=1"))).toBe("payload");
  expect(redactor.findMask("payload", redactor.json('{"password":"hunter2"}'))).toBe("payload");
  expect(redactor.findMask("payload", "password=… so it says, …")).toBe("payload");
  expect(redactor.findMask("payload", "password=hunter2, … and more")).toBeUndefined();
  expect(redactor.findMask("payload", "password=…x")).toBeUndefined();
  expect(redactor.secretsIn("params", { a: { password: ["one", { b: "two" }] }, c: "three" })).toEqual([
    "one",
    "two",
  ]);
});
