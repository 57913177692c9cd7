import { expect, test } from "vitest";
import { hideTaskTokens, hideTaskTokensIn } from "../model/text/task-token-mask.ts";
import { newTokenKey, readTaskToken, signTaskToken, toTokenKey } from "./task-token.ts";

const KEY = toTokenKey(newTokenKey());
const SUBJECT = { tenant: "ten_ü", taskId: "tsk_1", fence: 12 };

test("a token names its attempt, and only who has the key can make one", () => {
  const token = signTaskToken(SUBJECT, KEY);
  expect(token).toMatch(/^rtt_[\w-]+\.[\w-]{43}$/);
  expect(readTaskToken(token, KEY)).toEqual(SUBJECT);
  expect(readTaskToken(token, toTokenKey(newTokenKey()))).toBeNull();
});

test("a token that was changed in any way is refused", () => {
  const token = signTaskToken(SUBJECT, KEY);
  const [payload = "", signature = ""] = token.slice(4).split(".");
  const other = Buffer.from(JSON.stringify(["ten_other", "tsk_1", 12])).toString("base64url");
  const forged = [
    ...["", "rtt_", "rtt_.", "rtt_x.y", `rtt_${payload}`, `rtt_${payload}.`, `rtt_.${signature}`],
    ...[`rtt_${other}.${signature}`, `${token}x`, `${token}.x`, token.slice(0, -1), token.toUpperCase()],
    ...[`rtt_${payload}.${"é".repeat(43)}`, `rtt_${"a".repeat(5_000)}.${signature}`, `x${token}`],
  ];
  for (const each of forged) expect(readTaskToken(each, KEY), each).toBeNull();
});

test("tokens are masked in texts and in JSON at any depth, and nothing else is", () => {
  const token = signTaskToken(SUBJECT, KEY);
  expect(hideTaskTokens(`got ${token}, and ${token}`)).toBe("got …, and …");
  expect(hideTaskTokens("rtt_ is a prefix")).toBe("rtt_ is a prefix");
  const value = { a: [{ [token]: token }, 1, null], b: "rtt_x" };
  expect(hideTaskTokensIn(value)).toEqual({ a: [{ "…": "…" }, 1, null], b: "rtt_x" });
  const clean = { a: [1] };
  expect(hideTaskTokensIn(clean)).toBe(clean);
});
