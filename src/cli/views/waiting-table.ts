import type { WaitingReason } from "../../client/index.ts";
import { oneLine } from "../terminal/display-text.ts";
import { tableLines } from "./table.ts";

/** Why tasks wait: a line for each reason. */
export function waitingTable(
  reasons: readonly WaitingReason[],
  { width, title = "TASKS" }: { readonly width: number | undefined; readonly title?: string },
): string[] {
  return tableLines(
    [
      { title, align: "right" },
      { title: "REASON" },
      { title: "LANE", shrinksTo: 8 },
      { title: "AGENT", shrinksTo: 8 },
    ],
    reasons.map(({ code, lane = "", agentId = "", count }) => [
      String(count),
      code,
      oneLine(lane),
      oneLine(agentId),
    ]),
    { width },
  );
}
