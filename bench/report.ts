import { type Figure, type Goal, isMet, type Unit } from "./figure.ts";
import type { Machine } from "./machine.ts";

export interface PartReport {
  readonly part: string;
  readonly figures: readonly Figure[];
}

export function formatMachine(machine: Machine): string {
  const { cpu, cores, memoryGib, kernel, node, sqlite, postgres, commit, load } = machine;
  const software = [
    `Node ${node}`,
    `SQLite ${sqlite}`,
    ...(postgres === null ? [] : [`PostgreSQL ${postgres}`]),
  ];
  return [
    `Rota ${commit}`,
    `${cpu}, ${cores} cores, ${memoryGib} GiB, ${kernel}, load ${load.toFixed(2)} when it began`,
    software.join(", "),
  ].join("\n");
}

/** A table in Markdown, which is also easy on the eye in a terminal. */
export function formatPart({ part, figures }: PartReport): string {
  const rows = figures.map((each) => [
    each.name,
    show(each.value, each.unit),
    spread(each),
    each.goal === null ? "" : showGoal(each.goal, each.unit),
    { true: "yes", false: "NO", null: "" }[`${isMet(each)}`],
  ]);
  const table = [[part, "figure", "from – to", "goal", "met"], ...rows];
  const widths =
    table[0]?.map((_, column) => Math.max(...table.map((row) => row[column]?.length ?? 0))) ?? [];
  const line = (cells: readonly string[]) =>
    `| ${cells.map((cell, column) => align(cell, column, widths[column] ?? 0)).join(" | ")} |`;
  const [header = [], ...body] = table;
  const rule = widths.map((width, column) =>
    isNumber(column) ? `${"-".repeat(width - 1)}:` : "-".repeat(width),
  );
  return [line(header), line(rule), ...body.map(line)].join("\n");
}

function align(cell: string, column: number, width: number): string {
  return isNumber(column) ? cell.padStart(width) : cell.padEnd(width);
}

function isNumber(column: number): boolean {
  return column === 1 || column === 2;
}

function spread({ runs, unit }: Figure): string {
  if (runs.length < 2) return "";
  return `${show(Math.min(...runs), unit)} – ${show(Math.max(...runs), unit)}`;
}

function showGoal(goal: Goal, unit: Unit): string {
  if ("below" in goal) return `< ${show(goal.below, unit)}`;
  const aim = goal.aim === undefined ? "" : ` (aim ${show(goal.aim, unit)})`;
  return `≥ ${show(goal.atLeast, unit)}${aim}`;
}

function show(value: number, unit: Unit): string {
  switch (unit) {
    case "tasks/s":
      return `${Math.round(value).toLocaleString("en")}/s`;
    case "ms":
      return `${value.toFixed(2)} ms`;
    case "µs":
      return `${value.toFixed(2)} µs`;
    case "s":
      return `${value.toFixed(1)} s`;
    case "MiB":
      return `${Math.round(value)} MiB`;
    case "KiB":
      return `${value.toFixed(1)} KiB`;
    case "percent":
      return `${value.toFixed(2)} %`;
    case "share":
      return `${Math.round(value * 100)} %`;
    case "count":
      return String(value);
  }
}
