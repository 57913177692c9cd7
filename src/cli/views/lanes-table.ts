import type { LaneInfo } from "../../interface/lanes.ts";
import { oneLine } from "../terminal/display-text.ts";
import { tableLines } from "./table.ts";
import { shownSpan } from "./times.ts";

/** Lanes as a table, in the order given. */
export function lanesTable(
  lanes: readonly LaneInfo[],
  { width }: { readonly width: number | undefined },
): string[] {
  const numbers = ["CONCURRENCY", "TOTAL", "RUNNING", "WAITING", "OLDEST WAITS"];
  return tableLines(
    [{ title: "LANE", shrinksTo: 12 }, ...numbers.map((title) => ({ title, align: "right" as const }))],
    lanes.map(({ name, concurrency, total, running, waiting, oldestWaitMs }) => [
      oneLine(name),
      String(concurrency),
      String(total ?? "-"),
      String(running),
      String(waiting),
      oldestWaitMs === null ? "" : shownSpan(oldestWaitMs),
    ]),
    { width },
  );
}
