import { expect, test } from "vitest";
import { basePathsOf } from "../api/base-paths.ts";
import { readFilters } from "./use-filters.ts";

test("filters are what the address says, as far as the view allows it", () => {
  const schema = { agentId: undefined, priority: ["high", "low"] } as const;
  const read = (search: string) => readFilters(schema, new URLSearchParams(search));
  expect(read("agentId=a%20b&priority=high&other=1")).toEqual({ agentId: "a b", priority: "high" });
  expect(read("agentId=&priority=urgent")).toEqual({});
});

test.each([
  ["/ui/tasks", "", "", "/ui"],
  ["/rota/ui/tasks", "/rota", "/rota", "/rota/ui"],
  ["/rota/ui", "/rota", "/rota", "/rota/ui"],
  // Past the proxy.
  ["/ui/tasks", "/rota", "", "/ui"],
])("at %s of a server below %j the API is below %j and the app below %j", (path, base, basePath, uiPath) => {
  expect(basePathsOf(path, base)).toEqual({ basePath, uiPath });
});
