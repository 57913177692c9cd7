import { mkdtemp } from "node:fs/promises";
import { join } from "node:path";
import type { Findings, Setting } from "../job.ts";
import { measureScene } from "../neighbours/measure-scene.ts";
import { formatNeighbours } from "../neighbours/report.ts";
import { figuresOf, missedBy, type Scene } from "../neighbours/verdict.ts";
import { type NewPlace, postgresPlaces, sqlitePlaces } from "../place.ts";

export function neighboursOnSqlite(setting: Setting): Promise<Findings> {
  return neighbours("SQLite", sqlitePlaces(setting), setting);
}

export function neighboursOnPostgres(setting: Setting): Promise<Findings> {
  return neighbours("PostgreSQL", postgresPlaces(setting), setting);
}

/** What one tenant notices of another that attacks the node they share: first quiet, then one attack after the other. */
async function neighbours(storage: string, newPlace: NewPlace, setting: Setting): Promise<Findings> {
  const sizes = { ...setting.sizes.neighbours, ...setting.neighbours.sizes };
  const measure = async (attack: (typeof setting.neighbours.attacks)[number] | null) => {
    const folder = await mkdtemp(join(setting.folder, "neighbours-"));
    console.error(`  ${attack ?? "quiet"}`);
    return measureScene(newPlace, { attack, sizes, folder });
  };
  const quiet = await measure(null);
  const scenes: Scene[] = [quiet];
  for (const attack of setting.neighbours.attacks) {
    const scene = await measure(attack);
    scenes.push(scene);
    console.error(`    missed: ${missedBy(scene, quiet).join(", ") || "nothing"}`);
  }
  const figures = scenes.flatMap((scene) =>
    figuresOf(scene, quiet).map(({ figure }) => ({ ...figure, name: `${storage}, ${figure.name}` })),
  );
  return { figures, text: formatNeighbours(storage, scenes, quiet) };
}
