import type { SchedulePreview } from "../../client/index.ts";
import { oneLine } from "../terminal/display-text.ts";
import { tableLines } from "./table.ts";
import { shownDue } from "./times.ts";

/** What would come of a schedule, for people: what was understood, the moments, and below them what clocks do. */
export function previewLines(preview: SchedulePreview, now: number): string[] {
  return [`${oneLine(preview.normalized)} (${preview.kind})`, "", ...momentLines(preview, now)];
}

/** The moments, and below them what clocks do. */
export function momentLines({ next, notes }: SchedulePreview, now: number): string[] {
  const table = tableLines(
    [{ title: "MOMENT" }, { title: "DUE" }],
    next.map((moment) => [oneLine(moment), oneLine(shownDue(moment, now))]),
  );
  return [...table, ...(notes.length === 0 ? [] : ["", ...notes.map(oneLine)])];
}
