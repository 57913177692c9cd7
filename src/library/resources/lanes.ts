import type { Engine } from "../../engine/engine.ts";
import type { LaneInfo, Lanes } from "../../interface/lanes.ts";
import { RotaError } from "../../model/errors.ts";
import { parseLaneInput } from "../../model/input/lane-input.ts";
import type { StorageClock } from "../../services/storage-clock.ts";
import type { LaneRecord, Storage } from "../../storage/storage.ts";
import type { LaneCatalogue } from "../registries/lane-catalogue.ts";
import type { LaneTable } from "../registries/lane-table.ts";
import type { EndedTasks } from "./ended-tasks.ts";

/** The `error` of tasks that waited in a cleared lane. */
const CLEARED = "lane_cleared";
/** Tasks cancelled in one transaction, so that a long queue does not block other work for long. */
const CLEAR_SLICE = 500;

export interface LanesOptions {
  readonly tenant: string;
  readonly storage: Storage;
  readonly storageClock: StorageClock;
  readonly engine: Engine;
  readonly table: LaneTable;
  readonly catalogue: LaneCatalogue;
  readonly ended: EndedTasks;
  /** Throws once this process stops. */
  readonly checkNotDraining: () => void;
}

/** The lanes API of one tenant. */
export function createLanes(options: LanesOptions): Lanes {
  const { tenant, storage, storageClock, engine, table, catalogue, ended, checkNotDraining } = options;

  /** The lanes of this process, and lanes of other or earlier processes that still have tasks. */
  async function infos(): Promise<LaneInfo[]> {
    await catalogue.read();
    const records = new Map((await storage.lanes.list()).map((record) => [record.name, record]));
    const busy = [...records.values()].filter(({ inflight, waiting }) => inflight + waiting > 0);
    const names = new Set([...table.lanes.keys(), ...busy.map(({ name }) => name)]);
    return [...names].map((name) => toInfo(name, records.get(name)));
  }

  function toInfo(name: string, record: LaneRecord | undefined): LaneInfo {
    const oldestAt = record?.oldestAt ?? null;
    return {
      name,
      concurrency: engine.laneLoad(name)?.concurrency ?? 0,
      total: record?.total ?? null,
      running: record?.running ?? 0,
      waiting: record?.waiting ?? 0,
      oldestWaitMs: oldestAt === null ? null : Math.max(storageClock.now() - oldestAt, 0),
    };
  }

  async function isKnown(name: string): Promise<boolean> {
    await catalogue.read();
    return table.lanes.has(name) || (await storage.lanes.list()).some((record) => record.name === name);
  }

  return {
    async list() {
      return { lanes: await infos() };
    },

    async put(name, input) {
      const setting = parseLaneInput(name, input);
      checkNotDraining();
      await catalogue.put(setting);
      const records = await storage.lanes.list();
      return toInfo(
        name,
        records.find((record) => record.name === name),
      );
    },

    async clear(name) {
      if (!(await isKnown(name))) throw new RotaError("not_found", "lane not found");
      let count = 0;
      // Tasks submitted meanwhile stay: the first slice returns the cutoff.
      for (let cutoff = {}, more = true; more; ) {
        const cleared = await storage.lanes.clear({
          tenant,
          name,
          error: CLEARED,
          limit: CLEAR_SLICE,
          ...cutoff,
        });
        ended.handle(cleared.cancelled);
        count += cleared.cancelled.length;
        cutoff = { cutoff: cleared.cutoff };
        more = cleared.more;
      }
      return { cancelled: count };
    },
  };
}
