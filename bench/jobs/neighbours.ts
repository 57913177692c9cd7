import { mkdtemp } from "node:fs/promises";
import { join } from "node:path";
import { type NewStorage, postgresStorage, sqliteStorage } from "../empty-storage.ts";
import type { Findings, Setting } from "../job.ts";
import { measureScene } from "../neighbours/measure-scene.ts";
import { formatNeighbours } from "../neighbours/report.ts";
import { figuresOf, quietValues, type Scene } from "../neighbours/verdict.ts";

export function neighboursOnSqlite(setting: Setting): Promise<Findings> {
  return neighbours("SQLite", sqliteStorage(setting), setting);
}

export function neighboursOnPostgres(setting: Setting): Promise<Findings> {
  return neighbours("PostgreSQL", postgresStorage(setting), setting);
}

/** What one tenant notices of another that attacks the node they share: quiet, one attack after the other, quiet again. */
async function neighbours(storage: string, newStorage: NewStorage, setting: Setting): Promise<Findings> {
  const sizes = { ...setting.sizes.neighbours, ...setting.neighbours.sizes };
  const scenes: Scene[] = [];
  for (const attack of [null, ...setting.neighbours.attacks, null]) {
    console.error(`  ${attack ?? "quiet"}`);
    const folder = await mkdtemp(join(setting.folder, "neighbours-"));
    scenes.push(await measureScene(newStorage, { attack, sizes, folder }));
  }
  const quiet = quietValues(scenes);
  const figures = scenes.flatMap((scene) =>
    figuresOf(scene, quiet).map(({ figure }) => ({ ...figure, name: `${storage}, ${figure.name}` })),
  );
  return { figures, text: formatNeighbours(storage, scenes) };
}
