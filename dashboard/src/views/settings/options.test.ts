import { expect, test } from "vitest";
import { optionsOf } from "./options.ts";

test("a section is a list of its options, at their paths", () => {
  const section = {
    research: { executor: { type: "openai", apiKey: "…" }, maxInflight: 2 },
    allow: ["127.0.0.1", "10.0.0.0/8"],
    none: {},
  };
  expect(optionsOf(section)).toEqual([
    { path: "research.executor.type", text: "openai", isHidden: false },
    { path: "research.executor.apiKey", text: "…", isHidden: true },
    { path: "research.maxInflight", text: "2", isHidden: false },
    { path: "allow", text: '["127.0.0.1","10.0.0.0/8"]', isHidden: false },
    { path: "none", text: "{}", isHidden: false },
  ]);
});

test("a section that is a single value has no path", () => {
  expect(optionsOf("postgres://rota:…@db/rota")).toEqual([
    { path: "", text: "postgres://rota:…@db/rota", isHidden: true },
  ]);
  expect(optionsOf(null)).toEqual([{ path: "", text: "null", isHidden: false }]);
});
