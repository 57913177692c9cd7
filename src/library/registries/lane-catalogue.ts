import { isDeepStrictEqual } from "node:util";
import { RotaError } from "../../model/errors.ts";
import { isLaneName } from "../../model/lane.ts";
import { Service, type ServiceOptions } from "../../services/service.ts";
import type { LaneSetting, Storage, StorageSignal } from "../../storage/storage.ts";
import type { OneAtATime } from "../one-at-a-time.ts";
import type { CurrentSettings } from "../settings/current-settings.ts";
import type { LaneTable } from "./lane-table.ts";

/** Signals can be lost: other nodes' changes are seen at least this often. */
const POLL_MS = 30_000;
/** How many lanes are stored at most: every node asks each of them for work. */
const STORED_MAX = 1_000;

export interface LaneCatalogueOptions extends ServiceOptions {
  readonly storage: Storage;
  readonly current: CurrentSettings;
  readonly table: LaneTable;
  /** Whatever changes lanes takes turns. */
  readonly turns: OneAtATime;
  /** Told when other lanes, or others of their numbers, hold in this process. */
  readonly onChanged: () => void;
}

/** Keeps what this process knows of stored lanes as the storage has it: any node may change them at any time. */
export class LaneCatalogue extends Service {
  readonly name = "lane catalogue";
  readonly #options: LaneCatalogueOptions;
  #next: Promise<void> | null = null;
  /** Whether the storage may no longer know what this process wrote into it. */
  #isUnsure = false;

  constructor(options: LaneCatalogueOptions) {
    super(options);
    this.#options = options;
  }

  /** Before anything else: a task can be stored once its lane is. */
  async open(): Promise<void> {
    const { storage, table } = this.#options;
    table.replaceStored(await storage.lanes.settings());
    await storage.lanes.configure({ lanes: [...table.lanes.values()] });
  }

  async tick(): Promise<number> {
    await this.read();
    return POLL_MS;
  }

  onSignal({ kind }: StorageSignal): void {
    if (kind === "lanes" || kind === "reconnected") this.wake();
  }

  /** The storage was put back to an earlier state: what this process knows of lanes is written again. */
  restored(): void {
    this.#isUnsure = true;
    this.wake();
  }

  /** Resolves once everything holds here that was stored before this was called. Calls that wait share one look. */
  read(): Promise<void> {
    this.#next ??= this.#options.turns.run(() => {
      this.#next = null;
      return this.#read();
    });
    return this.#next;
  }

  /**
   * Whether one of these names, which nobody here knows, is that of a lane after all: another node may have made it a
   * moment ago, and whoever was told so may name it here at once.
   */
  async learn(names: Iterable<string>): Promise<boolean> {
    const { storage, table } = this.#options;
    const unknown = [...names].filter(isLaneName);
    // On a storage of our own nobody else makes any.
    if (unknown.length === 0 || storage.capabilities.exclusive) return false;
    await this.read();
    return unknown.some((name) => table.lanes.has(name));
  }

  /** Throws `conflict` for a lane that the configuration describes. */
  put(setting: LaneSetting): Promise<void> {
    const { storage, table, turns } = this.#options;
    return turns.run(async () => {
      if (table.isConfigured(setting.name)) throw configured(setting.name);
      await this.#read();
      if (!table.stored.has(setting.name) && table.stored.size >= STORED_MAX) throw full();
      await storage.lanes.put(setting);
      await this.#read();
    });
  }

  /**
   * The storage comes first: a lane is known here once tasks can be stored in it. What the configuration of this node says
   * of a lane is written again when another one, which knows nothing of that, stored something else.
   */
  async #read(): Promise<void> {
    const { storage, current, table, onChanged } = this.#options;
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
    this.log.info({ lanes: changed }, "took over what was stored of lanes");
  }
}

function configured(name: string): RotaError {
  const where =
    name === "tasks"
      ? "described by `scheduler.workerCount`, `scheduler.maxInflight` and `scheduler.maxPerAgentInflight` of the configuration"
      : "set by the configuration";
  return new RotaError("conflict", `the lane "${name}" is ${where}: change it there`);
}

function full(): RotaError {
  return new RotaError("conflict", `${STORED_MAX} lanes are stored, which is the limit: use one of them`);
}
