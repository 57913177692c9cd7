import { randomBytes } from "node:crypto";
import { expect, test } from "vitest";
import { SecretBox } from "./secret-box.ts";

const KEY = randomBytes(32).toString("base64");
const OTHER = randomBytes(32).toString("base64");

test("opens what it sealed, as often as it likes, and seals the same secret differently each time", () => {
  const box = new SecretBox(KEY);
  const sealed = box.seal("Bearer gëheim", "acme/writer");
  expect(sealed).not.toContain("Bearer");
  expect(box.seal("Bearer gëheim", "acme/writer")).not.toBe(sealed);
  expect([box.open(sealed, "acme/writer"), box.open(sealed, "acme/writer")]).toEqual([
    "Bearer gëheim",
    "Bearer gëheim",
  ]);
});

test("opens nothing with another key, for another owner, or after a change", () => {
  const box = new SecretBox(KEY);
  const sealed = box.seal("secret", "acme/writer");
  expect(new SecretBox(OTHER).open(sealed, "acme/writer")).toBeNull();
  expect(new SecretBox(undefined).open(sealed, "acme/writer")).toBeNull();
  expect(box.open(sealed, "globex/writer")).toBeNull();
  const [before, changed, after] = [sealed.slice(0, 30), sealed.at(30) === "A" ? "B" : "A", sealed.slice(31)];
  expect(box.open(before + changed + after, "acme/writer")).toBeNull();
  expect(box.open(`${sealed.slice(0, 17)}:`, "acme/writer")).toBeNull();
});

test("a new key before the old one seals, and both open", () => {
  const old = new SecretBox(KEY).seal("secret", "a");
  const both = new SecretBox(`${OTHER}, ${KEY}`);
  expect(both.open(old, "a")).toBe("secret");
  expect(new SecretBox(OTHER).open(both.seal("secret", "a"), "a")).toBe("secret");
});

test("without a key, and before there was one, secrets are stored as they are", () => {
  expect(new SecretBox(undefined).seal("secret", "a")).toBe("secret");
  expect(new SecretBox("").seal("secret", "a")).toBe("secret");
  expect(new SecretBox(KEY).open("secret", "a")).toBe("secret");
});

test.each(["short", "x".repeat(44), `${KEY},`, KEY.slice(4), "🔑".repeat(8)])(
  "%j is no key, and the sentence does not repeat it",
  (keys) => {
    expect(() => new SecretBox(keys)).toThrow(
      /^ROTA_SECRET_KEY must be 32 random bytes in base64, as `openssl rand -base64 32` prints them/,
    );
  },
);
