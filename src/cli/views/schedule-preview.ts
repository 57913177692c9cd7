import type { SchedulePreview } from "../../client/index.ts";
import { oneLine } from "../terminal/display-text.ts";
import { tableLines } from "./table.ts";
import { shownDue } from "./times.ts";

/** A preview for people: the phrase as understood, the due times, and notes about clock changes. */
export function previewLines(preview: SchedulePreview, now: number): string[] {
  return [`${oneLine(preview.normalized)} (${preview.kind})`, "", ...momentLines(preview, now)];
}

/** The due times, and below them notes about clock changes. */
export function momentLines({ next, notes }: SchedulePreview, now: number): string[] {
  const table = tableLines(
    [{ title: "TIME" }, { title: "DUE" }],
    next.map((moment) => [oneLine(moment), oneLine(shownDue(moment, now))]),
  );
  return [...table, ...(notes.length === 0 ? [] : ["", ...notes.map(oneLine)])];
}
