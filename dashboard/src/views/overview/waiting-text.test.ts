import { expect, test } from "vitest";
import { mergeSame } from "./waiting-text.ts";

test("reasons that read the same are one, and lead to the tasks of all their lanes", () => {
  const full = { code: "lane_full", lane: "main", count: 8 } as const;
  const merged = mergeSame([
    full,
    { code: "no_executor", agentId: "pdf", lane: "main", count: 7 },
    { code: "lane_full", lane: "cron", count: 5 },
    { code: "no_executor", agentId: "pdf", lane: "cron", count: 4 },
  ]);
  expect(merged).toEqual([
    { code: "no_executor", agentId: "pdf", count: 11 },
    full,
    { code: "lane_full", lane: "cron", count: 5 },
  ]);
});
