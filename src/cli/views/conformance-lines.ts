import type { CheckedBehaviour } from "../../worker-conformance/run-conformance.ts";
import { safeLines } from "../terminal/display-text.ts";
import { lineWidth } from "../terminal/print.ts";
import { styled } from "../terminal/style.ts";
import { tableLines } from "./table.ts";

/** A line for each behaviour, and for those that failed what the worker did instead and what it wrote. */
export function conformanceLines(results: readonly CheckedBehaviour[]): string[] {
  const table = tableLines(
    [
      { title: "", align: "right" },
      { title: "", style: (text) => styled(text.trim() === "ok" ? "green" : "red", text) },
      { title: "the worker …", shrinksTo: 30 },
    ],
    results.map(({ number, ok, title }) => [String(number), ok ? "ok" : "FAILED", title]),
    { width: lineWidth() },
  );
  const failed = results.filter(({ ok }) => !ok);
  const passed = results.length - failed.length;
  return [
    ...table,
    "",
    ...failed.flatMap(({ number, why = "", output = "" }) => [
      `${number}: ${safeLines(why)}`,
      ...(output === "" ? [] : [safeLines(output).replaceAll(/^/gm, "    | ")]),
    ]),
    failed.length === 0
      ? `All ${passed} behaviours hold.`
      : `${passed} of ${results.length} behaviours hold, ${failed.length} do not.`,
  ];
}
