import { isDeepStrictEqual } from "node:util";
import type { Engine } from "../../engine/engine.ts";
import type { ReloadOptions } from "../../interface/options.ts";
import type { Reloaded } from "../../interface/rota.ts";
import { type AgentName, agentKey } from "../../model/agent.ts";
import type { Lane } from "../../model/lane.ts";
import type { Log } from "../../model/log.ts";
import type { Storage } from "../../storage/storage.ts";
import type { OneAtATime } from "../one-at-a-time.ts";
import type { ExecutorDependencies } from "../registries/agent.ts";
import type { AgentTable } from "../registries/agent-table.ts";
import type { LaneTable } from "../registries/lane-table.ts";
import type { CurrentSettings } from "./current-settings.ts";
import { resolveAgain, type Settings, withOptions } from "./settings.ts";
import { runningOptions, settingsChanges } from "./settings-changes.ts";

export interface ReloaderOptions {
  readonly current: CurrentSettings;
  readonly lanes: LaneTable;
  readonly agents: AgentTable;
  /** The ids of all tenants. */
  readonly tenants: () => readonly string[];
  readonly storage: Storage;
  readonly engine: Engine;
  /** Serializes changes of agents, and reloads. */
  readonly turns: OneAtATime;
  /** Serializes changes of lanes, and reloads. */
  readonly laneTurns: OneAtATime;
  readonly executorDependencies: ExecutorDependencies;
  readonly log: Log;
  /** Called with the paths of the changed options, once their new values apply. */
  readonly onChanged: (paths: readonly string[]) => void;
}

/** A part of the settings that all nodes read from the storage. */
interface Write {
  /** Identifies the write: `lanes`, or the key of an agent. */
  readonly key: string;
  /** The agent whose limit it writes; left out: it writes lanes. */
  readonly bounds?: AgentName;
  readonly apply: () => Promise<void>;
  readonly undo: () => Promise<void>;
}

/** Changes the settings of a running Rota: everything that can change, or nothing. */
export class Reloader {
  readonly #options: ReloaderOptions;
  /** Writes whose undo failed, so that the stored value is unknown. The next reload repeats them, whatever it changes. */
  readonly #uncertain = new Map<string, Write>();
  /** What was last logged of options that need a restart. */
  #logged: unknown = [];

  constructor(options: ReloaderOptions) {
    this.#options = options;
  }

  /** Throws one `invalid_field` with everything that is wrong, or what the storage throws; then nothing has changed. */
  reload(options: ReloadOptions): Promise<Reloaded> {
    const { turns, laneTurns } = this.#options;
    return turns.run(() => laneTurns.run(() => this.#reload(options)));
  }

  async #reload(options: ReloadOptions): Promise<Reloaded> {
    const { current, engine, executorDependencies, onChanged } = this.#options;
    const before = current.value;
    const wanted = resolveAgain(options, before, executorDependencies);
    const after = withOptions(wanted, runningOptions(wanted.options, before));
    const changes = settingsChanges(before, wanted);
    await this.#store(before, after);
    if (changes.changed.length > 0) {
      current.replace(after);
      engine.settingsChanged();
      onChanged(changes.changed);
    }
    this.#logChanges(changes, { before, wanted });
    return changes;
  }

  /** Writes to the storage first: what the storage refuses must not apply in this process either. */
  async #store(before: Settings, after: Settings): Promise<void> {
    const done: Write[] = [];
    for (const write of [...this.#laneWrites(before, after), ...this.#boundWrites(before, after)]) {
      done.unshift(write);
      try {
        await write.apply();
        this.#uncertain.delete(write.key);
      } catch (error) {
        for (const each of done) await each.undo().catch(() => this.#uncertain.set(each.key, each));
        throw error;
      }
    }
  }

  /** A lane that left the configuration gets its stored numbers, if there are any. */
  #laneWrites(before: Settings, after: Settings): Write[] {
    const { lanes, storage } = this.#options;
    const lanesOf = (settings: Settings) => [...lanes.under(settings).values()].map(shared);
    const [old, now] = [lanesOf(before), lanesOf(after)];
    if (isDeepStrictEqual(old, now) && !this.#uncertain.has("lanes")) return [];
    return [
      {
        key: "lanes",
        apply: () => storage.lanes.configure({ lanes: now }),
        undo: () => storage.lanes.configure({ lanes: old }),
      },
    ];
  }

  /** An agent that left the configuration gets its stored limit, if there is one. */
  #boundWrites(before: Settings, after: Settings): Write[] {
    const { agents, storage, tenants } = this.#options;
    const boundIn = (settings: Settings, { tenant, agent }: AgentName): number | null =>
      (settings.agents.get(agent) ?? agents.storedOf(tenant).get(agent))?.maxInflight ?? null;
    const configure = (name: AgentName, maxInflight: number | null) =>
      storage.agents.configure({ ...name, maxInflight });
    const ids = [...new Set([...before.agents.keys(), ...after.agents.keys()])];
    const uncertain = [...this.#uncertain.values()].flatMap(({ bounds }) => bounds ?? []);
    const names = new Map(
      [...ids.flatMap((agent) => tenants().map((tenant) => ({ tenant, agent }))), ...uncertain].map(
        (name) => [agentKey(name), name],
      ),
    );
    return [...names]
      .filter(([, { agent }]) => !agents.isOfProgram(agent))
      .map(([key, name]) => ({ name, key, was: boundIn(before, name), is: boundIn(after, name) }))
      .filter(({ key, was, is }) => was !== is || this.#uncertain.has(key))
      .map(({ name, key, was, is }) => ({
        key,
        bounds: name,
        apply: () => configure(name, is),
        undo: () => configure(name, was),
      }));
  }

  #logChanges(
    { changed, needsRestart }: Reloaded,
    { before, wanted }: { before: Settings; wanted: Settings },
  ): void {
    const { log, lanes } = this.#options;
    if (changed.length > 0) log.info({ changed }, "applied the new configuration");
    const names = lanes.under(wanted);
    for (const name of [...lanes.under(before).keys()].filter((each) => !names.has(each))) {
      log.info(
        { lane: name },
        `the lane "${name}" was removed from the configuration: its waiting tasks still run; new tasks that name it go to "main"`,
      );
    }
    this.#logNeededRestart(needsRestart, wanted);
  }

  /** Logs each change once: the configuration is read repeatedly. */
  #logNeededRestart(needsRestart: readonly string[], { options }: Settings): void {
    const { storage, storageWaitSec } = options;
    const { enabled, strategy, workerCount } = options.scheduler;
    const values = [storage, storageWaitSec, enabled, strategy, workerCount];
    const logged = needsRestart.length === 0 ? [] : [needsRestart, ...values];
    if (isDeepStrictEqual(logged, this.#logged)) return;
    this.#logged = logged;
    if (needsRestart.length === 0) return;
    const names = needsRestart.map((path) => `\`${path}\``).join(", ");
    this.#options.log.warn(
      { needsRestart },
      `${names} changed, which takes effect when Rota is started again`,
    );
  }
}

/** The part of a lane that applies to all nodes. */
function shared({ concurrency: _, ...lane }: Lane): Omit<Lane, "concurrency"> {
  return lane;
}
