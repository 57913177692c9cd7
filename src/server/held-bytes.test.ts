import { expect, test } from "vitest";
import { HeldBytes } from "./held-bytes.ts";

const [a, b, c] = ["a", "b", "c"].map((keyId) => ({ keyId, tenant: "one" })) as [Owner, Owner, Owner];
const none = { keyId: null, tenant: "one" };
const other = { keyId: "d", tenant: "other" };

interface Owner {
  readonly keyId: string;
  readonly tenant: string;
}

const newBytes = (hasSecondTenant: () => boolean) =>
  new HeldBytes(
    { max: 100, maxEach: 40, what: "the unread responses", advice: "read them" },
    hasSecondTenant,
  );

test("no key uses up the room of the others, and gets its own back once its responses are read", () => {
  const unread = newBytes(() => false);
  const read = unread.add(a, 30);
  expect(() => unread.add(a, 11)).toThrow("the unread responses of this API key");
  unread.add(a, 10);
  expect(() => unread.check(a)).toThrow("may take 40 bytes");
  unread.check(b);
  unread.add(b, 40);
  read();
  read();
  expect(unread.all).toBe(50);
  unread.check(a);
  unread.add(a, 30);
});

test("all keys together have a limit", () => {
  const unread = newBytes(() => false);
  for (const owner of [a, b, none]) unread.add(owner, 30);
  for (const owner of [c, none]) {
    expect(() => unread.add(owner, 11)).toThrow("the unread responses of all callers");
  }
});

test("a response larger than the limit is sent when it is the only one", () => {
  const unread = newBytes(() => false);
  const read = unread.add(a, 500);
  expect(() => unread.add(b, 1)).toThrow();
  read();
  unread.add(b, 500);
});

test("all keys of a tenant together get half of the room if there is a second tenant", () => {
  const unread = newBytes(() => true);
  const read = unread.add(a, 30);
  expect(() => unread.add(b, 21)).toThrow("the unread responses of this tenant may take 50 bytes");
  unread.add(b, 20);
  expect(() => unread.check(c)).toThrow("of this tenant");
  unread.check(other);
  unread.add(other, 40);
  read();
  unread.check(c);
});
