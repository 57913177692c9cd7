import { expect, test } from "vitest";
import { checkSessionKey } from "./session-key.ts";

test.each(["a", "user:42", "a/b?c#d%", " ", "é 🦉", "x".repeat(256), "🦉".repeat(256), "..."])(
  "%j is the key of a session, and comes back from a URL as it is",
  (key) => {
    expect(checkSessionKey(key)).toBe(key);
    const { pathname } = new URL(`http://x/${encodeURIComponent(key)}`);
    expect(decodeURIComponent(pathname.slice(1))).toBe(key);
  },
);

test.each(["", ".", "..", "a\nb", "\0", "\u0085", "x".repeat(257), "\ud800", 5, null, {}])(
  "%j is none",
  (key) => {
    expect(() => checkSessionKey(key)).toThrow(
      /^`sessionKey` must be 1 to 256 characters without control characters, but not \. or \.\. alone, not /,
    );
    expect(() => checkSessionKey(key, "key")).toThrow(/^`key` must be /);
  },
);
