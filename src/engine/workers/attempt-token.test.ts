import { expect, test } from "vitest";
import { hashOfToken, newSecrets, tokenOf } from "./attempt-token.ts";

test.each([
  ["without a time", null],
  ["with a time", 1_800_000_000_000],
])("a repeated claim gets the same tokens %s, whose hashes the storage has", (_, time) => {
  const secrets = newSecrets("claim", 50, time);
  expect(new Set(secrets.map(({ hash }) => hash)).size).toBe(50);
  for (const { nonce, hash } of secrets) {
    const token = tokenOf(nonce, "claim");
    expect(token).toMatch(/^att_[\w-]+$/);
    expect(hashOfToken(token)).toBe(hash);
    expect(tokenOf(nonce, "another")).not.toBe(token);
    expect(token + nonce).not.toContain(hash.slice(-43));
  }
});

test("hashes with a later time follow those with an earlier one", () => {
  const times = [1, 1_800_000_000_000, 1_800_000_000_001, 36 ** 8 - 1, 36 ** 8];
  const hashes = times.flatMap((time) => newSecrets("claim", 3, time).map(({ hash }) => hash));
  const inOrder = [...hashes].sort();
  expect(inOrder.map((hash) => hash.slice(0, 9))).toEqual(hashes.map((hash) => hash.slice(0, 9)));
});

test("any text may stand for a token", () => {
  for (const text of ["", "att_", "x".repeat(56), "é".repeat(56), "\0".repeat(56), `att_${"\0".repeat(52)}`])
    expect(hashOfToken(text)).toMatch(/^[0-9a-z]{0,9}[\w-]{43}$/);
});
