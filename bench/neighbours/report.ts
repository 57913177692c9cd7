import { formatTable, show } from "../report.ts";
import {
  type Column,
  figuresOf,
  missedBy,
  noisyColumns,
  quietValues,
  type Scene,
  type Values,
} from "./verdict.ts";

const COLUMNS: readonly Column[] = [
  "submit p50",
  "submit p99",
  "list p50",
  "list p99",
  "start p99",
  "schedule late",
  "callback p99",
  "refused",
  "memory",
  "deaths",
];

/** Attack × figure, each time with how many times that of quiet, and whether the goals are met. */
export function formatNeighbours(storage: string, scenes: readonly Scene[]): string {
  const header = [storage, ...COLUMNS, "attacker: accepted", "refused", "unanswered", "verdict"];
  const quiet = quietValues(scenes);
  const rows = scenes.map((scene) => rowOf(scene, quiet));
  const table = formatTable([header, ...rows], {
    numbers: (column) => column > 0 && column < header.length - 1,
  });
  return [table, ...noise(scenes), ...refusals(scenes)].join("\n");
}

function rowOf(scene: Scene, quiet: Values): string[] {
  const { name, attacker } = scene;
  const figures = new Map(figuresOf(scene, quiet).map(({ column, figure }) => [column, figure]));
  const shown = COLUMNS.map((column) => {
    const found = figures.get(column);
    if (found === undefined) return "none";
    const base = quiet[column] ?? 0;
    const isCompared = found.unit === "ms" && attacker !== null && base > 0;
    return show(found.value, found.unit) + (isCompared ? ` (${show(found.value / base, "times")})` : "");
  });
  if (attacker === null) return [name, ...shown, "", "", "", ""];
  const { accepted, refused, unanswered } = attacker;
  return [name, ...shown, ...[accepted, refused, unanswered].map(String), verdict(missedBy(scene, quiet))];
}

function verdict(missed: readonly Column[]): string {
  return missed.length === 0 ? "ok" : `MISSED: ${missed.join(", ")}`;
}

function noise(scenes: readonly Scene[]): string[] {
  const noisy = noisyColumns(scenes);
  if (noisy.length === 0) return [];
  return [`\nThe machine is too busy to trust the verdicts: quiet alone misses ${noisy.join(", ")}.`];
}

/** Why the victim was refused, where it was. */
function refusals(scenes: readonly Scene[]): string[] {
  return scenes.flatMap(({ name, victim }) =>
    victim.refusal === null ? [] : [`\n${name}: the victim's first refusal was: ${victim.refusal}`],
  );
}
