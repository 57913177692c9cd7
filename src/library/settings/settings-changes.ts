import { isDeepStrictEqual } from "node:util";
import { isObject } from "../../model/input/field-checks.ts";
import type { Settings } from "./settings.ts";

/** Options that a running process cannot change. */
const NEEDS_RESTART: readonly string[] = [
  "scheduler.enabled",
  "scheduler.strategy",
  "scheduler.workerCount",
  "storage",
  "storageWaitSec",
];

export interface SettingsChanges {
  /** Paths of options, sorted. */
  readonly changed: readonly string[];
  readonly needsRestart: readonly string[];
}

/** Which options differ, and which of them need a restart. */
export function settingsChanges(before: Settings, after: Settings): SettingsChanges {
  const [old, now] = [valuesByPath(before), valuesByPath(after)];
  const paths = [...new Set([...old.keys(), ...now.keys()])].sort();
  const differing = paths.filter((path) => !isDeepStrictEqual(old.get(path), now.get(path)));
  return {
    changed: differing.filter((path) => !NEEDS_RESTART.includes(path)),
    needsRestart: differing.filter((path) => NEEDS_RESTART.includes(path)),
  };
}

/** The wanted options, but those that need a restart keep their values from `before`. */
export function runningOptions(wanted: Settings["options"], before: Settings): Settings["options"] {
  const { storage, storageWaitSec, scheduler } = before.options;
  const { enabled, strategy, workerCount } = scheduler;
  return {
    ...wanted,
    storage,
    storageWaitSec,
    scheduler: { ...wanted.scheduler, enabled, strategy, workerCount },
  };
}

/** A lane, an agent and an executor are one value each, and so is every other option of a section. */
function valuesByPath({ options, agents, executors }: Settings): Map<string, unknown> {
  const sections = {
    ...options,
    agents: Object.fromEntries([...agents].map(([id, agent]) => [id, agent.options])),
    executors: Object.fromEntries([...executors].map(([kind, { config }]) => [kind, config])),
  };
  const values = new Map<string, unknown>();
  for (const [name, section] of Object.entries(sections)) {
    if (!isObject(section)) values.set(name, section);
    else for (const [key, value] of Object.entries(section)) values.set(`${name}.${key}`, value);
  }
  return values;
}
