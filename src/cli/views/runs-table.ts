import type { Run } from "../../client/index.ts";
import { oneLine } from "../terminal/display-text.ts";
import { type State, styled, styledState } from "../terminal/style.ts";
import { outcomeText, tookText } from "./run-text.ts";
import { tableLines } from "./table.ts";
import { shownAgo } from "./times.ts";

/** Runs as a table, in the order given. */
export function runsTable(
  runs: readonly Run[],
  { now, width }: { readonly now: number; readonly width: number | undefined },
): string[] {
  return tableLines(
    [
      { title: "RUN", align: "right" },
      { title: "SCHEDULE", align: "right" },
      { title: "STATUS", style: (text) => styledState(text as State) },
      { title: "AGENT", shrinksTo: 8 },
      { title: "DUE" },
      { title: "TOOK", align: "right" },
      {
        title: "OUTCOME",
        shrinksTo: 12,
        style: (text) => (text.startsWith("✗") ? styled("red", text) : text),
      },
    ],
    runs.map((run) => [
      String(run.id),
      String(run.task_id),
      run.status,
      oneLine(run.agent_id),
      shownAgo(run.due_at * 1_000, now),
      tookText(run),
      outcomeText(run),
    ]),
    { width },
  );
}
