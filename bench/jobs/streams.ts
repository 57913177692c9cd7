import { sqliteStorage } from "../empty-storage.ts";
import { type Figure, figure } from "../figure.ts";
import type { Setting } from "../job.ts";
import { measureStreams, type StreamFigures } from "../streams/measure-streams.ts";

const GOAL = { below: 50 };

/** What an open stream of notifications costs, and how soon all of them have reported a change. */
export async function streamsJob({ folder, turns, sizes }: Setting): Promise<Figure[]> {
  const measured: StreamFigures[] = [];
  for (let turn = 1; turn <= turns; turn++) {
    const figures = await measureStreams(sqliteStorage({ folder }), sizes.streams);
    measured.push(figures);
    console.error(`  turn ${turn}: ${figures.rssKib.toFixed(1)} KiB each`);
  }
  const runs = (name: keyof StreamFigures) => measured.map((figures) => figures[name]);
  const count = sizes.streams.toLocaleString("en");
  return [
    figure(`memory of a stream, ${count} open`, "KiB", runs("rssKib"), GOAL),
    figure(`of that in use, ${count} open`, "KiB", runs("usedKib")),
    figure(`a change until ${count} streams have sent it`, "ms", runs("notifiedMs")),
    figure("statements for that", "count", runs("statements")),
  ];
}
