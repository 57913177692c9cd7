import { expect, test } from "vitest";
import { webhookKey } from "./webhook-secret.ts";

const KEY = Buffer.from("0123456789abcdef0123456789abcdef");
const BASE64 = KEY.toString("base64");

test("what follows whsec_ is the key in base64, however long", () => {
  expect(webhookKey(`whsec_${BASE64}`)).toEqual(new Uint8Array(KEY));
  expect(webhookKey("whsec_c2hvcnQ=")).toEqual(new Uint8Array(Buffer.from("short")));
});

test("base64 of 24 to 64 bytes needs no prefix", () => {
  expect(webhookKey(BASE64)).toEqual(new Uint8Array(KEY));
});

test.each(["correct horse battery staple", "c2hvcnQ=", BASE64.slice(1), `${BASE64}${BASE64}${BASE64}`])(
  "any other text, such as %s, is the key itself",
  (secret) => {
    expect(webhookKey(secret)).toEqual(new Uint8Array(Buffer.from(secret)));
  },
);

test.each(["", "  ", "whsec_", "whsec_not base64", "whsec_abc", "whsec_c2hvcnQ=="])(
  "%j is no secret",
  (secret) => {
    expect(webhookKey(secret)).toBeNull();
  },
);
