import type { AgentInfo } from "../../interface/agents.ts";
import { oneLine } from "../terminal/display-text.ts";
import { sheetLines } from "./sheet.ts";
import { tableLines } from "./table.ts";
import { jsonText } from "./task-sheet.ts";

/** Agents as a table, in the order given. */
export function agentsTable(
  agents: readonly AgentInfo[],
  { width }: { readonly width: number | undefined },
): string[] {
  return tableLines(
    [
      { title: "AGENT", shrinksTo: 12 },
      { title: "FROM" },
      { title: "LANE" },
      { title: "MAX RUNNING", align: "right" },
      { title: "MAX WAITING", align: "right" },
      { title: "EXECUTOR", shrinksTo: 12 },
    ],
    agents.map(({ id, source, lane, maxInflight, maxQueued, executor }) => [
      oneLine(id),
      source,
      oneLine(lane ?? ""),
      String(maxInflight ?? ""),
      String(maxQueued ?? ""),
      executor === undefined ? "" : executorText(executor),
    ]),
    { width },
  );
}

/** The type, and the URL if there is one. */
function executorText(executor: object): string {
  const { type, url, baseUrl } = executor as { type: string; url?: string; baseUrl?: string };
  return oneLine([type, url ?? baseUrl ?? ""].join(" "));
}

/** All fields of an agent, for people. */
export function agentSheet({
  id,
  source,
  executor,
  lane,
  maxInflight,
  maxQueued,
  contextWindow,
  writs,
}: AgentInfo): string[] {
  return sheetLines([
    ["agent", oneLine(id)],
    ["from", source],
    ["executor", jsonText(executor)],
    ["lane", lane === undefined ? undefined : oneLine(lane)],
    ["max running", maxInflight === undefined ? undefined : String(maxInflight)],
    ["max waiting", maxQueued === undefined ? undefined : String(maxQueued)],
    ["context window", contextWindow === undefined ? undefined : String(contextWindow)],
    ["writs", writs === undefined ? undefined : String(writs)],
  ]);
}
