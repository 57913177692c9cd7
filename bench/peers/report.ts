import { type Figure, isMet } from "../figure.ts";
import { formatTable, show } from "../report.ts";
import { type Contender, showTuning } from "./contender.ts";
import type { System } from "./queue.ts";
import { CLASSES, type Class, SYSTEMS } from "./systems/index.ts";

/** A row of the tables: figures and comparisons by the name of the system. */
export interface Line {
  readonly name: string;
  readonly figures: ReadonlyMap<string, Figure>;
  readonly comparisons: ReadonlyMap<string, Figure>;
}

export interface PeersReport {
  readonly lines: readonly Line[];
  readonly contenders: readonly Contender[];
  /** Who was not run, or what of it, and why. */
  readonly notRun: readonly string[];
  readonly versions: ReadonlyMap<string, string>;
}

/** Markdown: a table for each class of storage, then who was measured with which settings. */
export function formatPeers(report: PeersReport): string {
  return [
    ...CLASSES.map((each) => `### ${each.name}\n\n${formatClass(each, report)}`),
    formatMisses(report),
    `### Settings\n\n${formatSettings(report)}`,
    ...(report.notRun.length === 0 ? [] : [`### Not run\n\n${list(report.notRun)}`]),
  ].join("\n\n");
}

function formatClass({ rota, peers }: Class, { lines }: PeersReport): string {
  const systems = [rota, ...peers];
  const rows = lines.map((line) => [line.name, ...systems.map(({ name }) => formatCell(name, line))]);
  return formatTable([["", ...systems.map(({ name }) => name)], ...rows], {
    numbers: (column) => column > 0,
  });
}

/** A row by itself, as soon as it is there: the whole takes its time. */
export function formatLine(line: Line): string {
  return [...line.figures.keys()]
    .map((system) => `  ${line.name}, ${system}: ${formatCell(system, line)}`)
    .join("\n");
}

/** In brackets: how many times as good Rota is. */
function formatCell(system: string, { figures, comparisons }: Line): string {
  const figure = figures.get(system);
  if (figure === undefined) return "not run";
  const value = show(figure.value, figure.unit);
  const comparison = comparisons.get(system);
  if (comparison === undefined) return value;
  const missed = isMet(comparison) === false ? " NO" : "";
  return `${value} (${show(comparison.value, comparison.unit)}${missed})`;
}

function formatMisses({ lines }: PeersReport): string {
  const all = lines.flatMap(({ comparisons }) => [...comparisons.values()]);
  const held = all.filter(({ goal }) => goal !== null);
  const missed = held.filter((figure) => isMet(figure) === false);
  const summary = `In brackets: how many times as good Rota is. Goals met: ${held.length - missed.length} of ${held.length}.`;
  if (missed.length === 0) return summary;
  const lineOf = ({ name, value, unit, goal }: Figure) =>
    `${name}: ${show(value, unit)}, to be ${goal !== null && "atLeast" in goal ? show(goal.atLeast, unit) : ""}`;
  return `${summary} Missed:\n\n${list(missed.map(lineOf))}`;
}

function formatSettings({ contenders, versions }: PeersReport): string {
  return list(
    SYSTEMS.flatMap((system) => {
      const contender = contenders.find((each) => each.system === system);
      return contender === undefined ? [] : [formatContender(contender, versions)];
    }),
  );
}

function formatContender(
  { system, at50, best, tried }: Contender,
  versions: PeersReport["versions"],
): string {
  const settings =
    at50 === best ? showTuning(at50) : `${showTuning(at50)} (with a backlog: ${showTuning(best)})`;
  const others = tried.filter(({ tuning }) => tuning !== at50 && tuning !== best);
  const slower =
    others.length === 0 ? "" : ` Slower: ${others.map(({ tuning }) => showTuning(tuning)).join("; ")}.`;
  const lacks = system.lacks === null ? "" : ` It has no ${system.lacks}.`;
  return `**${nameOf(system, versions)}**: ${settings}. Durability: ${system.durability}.${slower}${lacks}`;
}

function nameOf({ name, package: of }: System, versions: PeersReport["versions"]): string {
  const version = of === null ? undefined : versions.get(of);
  return version === undefined ? name : `${name} (${version})`;
}

function list(items: readonly string[]): string {
  return items.map((item) => `- ${item}`).join("\n");
}
