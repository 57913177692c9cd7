import { expect, test } from "vitest";
import { agentKey, agentOfKey, checkAgentId, toAgentId } from "./agent.ts";

test.each([
  "index",
  "team/a:1@b",
  "Überblick",
  "研究員",
  "مساعد",
  "मेरा एजेंट",
  "night shift",
  "👩‍🚀",
  "50%",
  "...",
  "x".repeat(128),
  "研".repeat(128),
  "👍".repeat(128),
])("%s can be the id of an agent", (id) => {
  expect(toAgentId(id)).toBe(id);
});

test("what looks the same is the same, however it was typed", () => {
  expect(toAgentId("U\u0308ber")).toBe("Über");
  expect(toAgentId("\u1100\u1161")).toBe("가");
  expect(toAgentId("e\u0301".repeat(128))).toBe("é".repeat(128));
});

test.each([
  "",
  " ",
  " a",
  "a ",
  ".",
  "..",
  "a\nb",
  "a\u0000b",
  "a\u007fb",
  "a\u0085b",
  "a\u202eb",
  "a\u200fb",
  "a\u2066b",
  "a\u2028b",
  "\ud800",
  "x".repeat(129),
  "👍".repeat(129),
  "x".repeat(1_000_000),
  5,
  null,
  undefined,
])("%j cannot", (id) => {
  expect(toAgentId(id)).toBeNull();
  expect(() => checkAgentId(id, "id")).toThrow("`id` must be 1 to 128 characters of any script");
});

const NAMES = ["", " ", "a", "a ", " a", "1", "1 a", "a\nb", "a b", "\0", '"', '","', "👍", "10 a"];

test("no two agents have the same key, and a key says which agent it is", () => {
  const agents = NAMES.flatMap((tenant) => NAMES.map((agent) => ({ tenant, agent })));
  const keys = agents.map(agentKey);
  expect(new Set(keys).size).toBe(agents.length);
  expect(keys.map(agentOfKey)).toEqual(agents);
});

test("the keys of a tenant's agents are those that start with the key of its agent without a name", () => {
  for (const tenant of NAMES) {
    const prefix = agentKey({ tenant, agent: "" });
    const owners = NAMES.filter((each) =>
      NAMES.some((agent) => agentKey({ tenant: each, agent }).startsWith(prefix)),
    );
    expect(owners).toEqual([tenant]);
  }
});
