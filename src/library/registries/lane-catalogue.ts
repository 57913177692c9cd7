import { isDeepStrictEqual } from "node:util";
import { RotaError } from "../../model/errors.ts";
import { isLaneName, TASKS_LANE } from "../../model/lane.ts";
import { Service, type ServiceOptions } from "../../services/service.ts";
import type { LaneSetting, Storage } from "../../storage/storage.ts";
import type { OneAtATime } from "../one-at-a-time.ts";
import type { CurrentSettings } from "../settings/current-settings.ts";
import type { LaneTable } from "./lane-table.ts";

/** Signals can be lost: this node reads changes of other nodes at least this often. */
const POLL_MS = 30_000;
/** The most stored lanes: every node polls each of them for tasks. */
const STORED_MAX = 1_000;

export interface LaneCatalogueOptions extends ServiceOptions {
  readonly storage: Storage;
  readonly current: CurrentSettings;
  readonly table: LaneTable;
  /** Serializes changes of lanes. */
  readonly turns: OneAtATime;
  /** Called when lanes or their numbers have changed in this process. */
  readonly onChanged: () => void;
}

/** Keeps this process's copy of the stored lanes up to date: any node may change them at any time. */
export class LaneCatalogue extends Service<LaneCatalogueOptions> {
  readonly name = "lane catalogue";
  #next: Promise<void> | null = null;
  /** Whether the storage may have lost what this process wrote into it. */
  #isUnsure = false;

  /** Called before anything else: a task can only be stored after its lane. */
  async open(): Promise<void> {
    const { storage, table } = this.options;
    table.replaceStored(await storage.lanes.settings());
    await storage.lanes.configure({ lanes: [...table.lanes.values()] });
  }

  async tick(): Promise<number> {
    await this.read();
    return POLL_MS;
  }

  /** The storage was restored to an earlier state: this process writes its lanes again. */
  restored(): void {
    this.#isUnsure = true;
    this.wake();
  }

  /** Resolves once this process has applied every change stored before the call. Waiting calls share one read. */
  read(): Promise<void> {
    this.#next ??= this.options.turns.run(() => {
      this.#next = null;
      return this.#read();
    });
    return this.#next;
  }

  /**
   * Whether one of these names, which are unknown here, is a lane after all. Another node may have created it a moment ago, and
   * the caller that created it may use it here at once.
   */
  async learn(names: Iterable<string>): Promise<boolean> {
    const { storage, table } = this.options;
    const unknown = [...names].filter(isLaneName);
    // No other node creates lanes if this process has the storage to itself.
    if (unknown.length === 0 || storage.capabilities.exclusive) return false;
    await this.read();
    return unknown.some((name) => table.lanes.has(name));
  }

  /** Throws `conflict` for a lane that the configuration describes. */
  put(setting: LaneSetting): Promise<void> {
    const { storage, table, turns } = this.options;
    return turns.run(async () => {
      if (table.isConfigured(setting.name)) throw configured(setting.name);
      await this.#read();
      if (!table.stored.has(setting.name) && table.stored.size >= STORED_MAX) throw full();
      await storage.lanes.put(setting);
      await this.#read();
    });
  }

  /**
   * Writes to the storage first, so that a lane is known here only once tasks can be stored in it. If another node stored
   * something else for a lane that the configuration of this node describes, this node writes its own values again.
   */
  async #read(): Promise<void> {
    const { storage, current, table, onChanged } = this.options;
    const settings = await storage.lanes.settings();
    const stored = new Map(settings.map((setting) => [setting.name, setting]));
    const names = [...new Set([...table.stored.keys(), ...stored.keys()])];
    const changed = names.filter((name) => !isDeepStrictEqual(table.stored.get(name), stored.get(name)));
    const isUnsure = this.#isUnsure;
    if (changed.length === 0 && !isUnsure) return;
    const lanes = table.under(current.value, stored);
    const written = isUnsure ? [...lanes.values()] : changed.flatMap((name) => lanes.get(name) ?? []);
    await storage.lanes.configure({ lanes: written });
    if (isUnsure) this.#isUnsure = false;
    if (changed.length === 0) return;
    table.replaceStored(settings);
    onChanged();
    this.log.info({ lanes: changed }, "applied the stored lanes");
  }
}

function configured(name: string): RotaError {
  const where =
    name === TASKS_LANE
      ? "described by `scheduler.workerCount`, `scheduler.maxInflight` and `scheduler.maxPerAgentInflight` of the configuration: change it there, or remove these options and start Rota again"
      : "set by the configuration: change it there";
  return new RotaError("conflict", `the lane "${name}" is ${where}`);
}

function full(): RotaError {
  return new RotaError("conflict", `${STORED_MAX} lanes are stored, which is the limit: use one of them`);
}
