import type { DoctorProgress, DoctorReport } from "../../interface/doctor.ts";
import { displayWidth, oneLine, pad } from "../terminal/display-text.ts";
import { styled } from "../terminal/style.ts";

/** The report of an examination, for people: a line for each check, with its findings below. */
export function doctorLines({ checks }: DoctorReport): string[] {
  const width = Math.max(0, ...checks.map(({ name }) => displayWidth(name)));
  return checks.flatMap(({ name, ok, summary, findings }) => [
    `${ok ? styled("green", "✓") : styled("red", "✗")} ${pad(name, width)}  ${oneLine(summary)}`,
    ...findings.map((finding) => `${" ".repeat(width + 4)}- ${oneLine(finding)}`),
  ]);
}

/** The progress of an examination. */
export function progressText({ check, done, total }: DoctorProgress): string {
  const share = total === null ? "" : ` (${Math.floor((100 * done) / Math.max(total, 1))} %)`;
  return `checking ${check}: ${done}${total === null ? "" : ` of ${total}`}${share}`;
}
