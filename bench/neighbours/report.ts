import { formatTable, show } from "../report.ts";
import { type Column, figuresOf, missedBy, type Scene, valuesOf } from "./verdict.ts";

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
export function formatNeighbours(storage: string, scenes: readonly Scene[], quiet: Scene): string {
  const header = [storage, ...COLUMNS, "attacker: accepted", "refused", "unanswered", "verdict"];
  const rows = scenes.map((scene) => rowOf(scene, quiet));
  const table = formatTable([header, ...rows], {
    numbers: (column) => column > 0 && column < header.length - 1,
  });
  return [table, ...refusals(scenes)].join("\n");
}

function rowOf(scene: Scene, quiet: Scene): string[] {
  const cells = new Map(figuresOf(scene, quiet).map(({ column, figure }) => [column, figure]));
  const base = valuesOf(quiet);
  const missed = missedBy(scene, quiet);
  const shown = COLUMNS.map((column) => {
    const cell = cells.get(column);
    if (cell === undefined) return "none";
    const before = base[column];
    const ratio =
      cell.unit !== "ms" || scene === quiet || before === undefined || before <= 0
        ? ""
        : ` (${show(cell.value / before, "times")})`;
    return `${show(cell.value, cell.unit)}${ratio}`;
  });
  const { attacker } = scene;
  const asked =
    attacker === null ? ["", "", ""] : [attacker.accepted, attacker.refused, attacker.unanswered].map(String);
  return [scene.name, ...shown, ...asked, scene === quiet ? "" : verdict(missed)];
}

function verdict(missed: readonly Column[]): string {
  return missed.length === 0 ? "ok" : `MISSED: ${missed.join(", ")}`;
}

/** Why the victim was refused, where it was. */
function refusals(scenes: readonly Scene[]): string[] {
  return scenes.flatMap(({ name, victim }) =>
    victim.refusal === null ? [] : [`\n${name}: the victim's first refusal was: ${victim.refusal}`],
  );
}
