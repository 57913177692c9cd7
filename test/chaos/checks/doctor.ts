import type { History } from "../history.ts";

/** Rota's own examination finds nothing: every counter says what the rows say, no moment is unaccounted for. */
export function doctor({ doctor: report }: History): string[] {
  const bad = report.checks.filter(({ ok }) => !ok);
  return bad.flatMap(({ name, findings }) => findings.map((finding) => `doctor, ${name}: ${finding}`));
}
