import { type Lane, TASKS_LANE } from "../../model/lane.ts";
import type { LaneSetting } from "../../storage/storage.ts";
import type { CurrentSettings } from "../settings/current-settings.ts";
import { type Settings, toLane } from "../settings/settings.ts";

/** All lanes. The configuration overrides what users stored, and that overrides the defaults. */
export class LaneTable {
  readonly #current: CurrentSettings;
  #stored: ReadonlyMap<string, LaneSetting> = new Map();
  /** Cached for these settings: every submitted task looks up its lane. */
  #made: { readonly settings: Settings; readonly lanes: ReadonlyMap<string, Lane> } | null = null;

  constructor(current: CurrentSettings) {
    this.#current = current;
  }

  /** By name, in the order in which they are shown. */
  get lanes(): ReadonlyMap<string, Lane> {
    const settings = this.#current.value;
    if (this.#made?.settings !== settings) this.#made = { settings, lanes: this.under(settings) };
    return this.#made.lanes;
  }

  get stored(): ReadonlyMap<string, LaneSetting> {
    return this.#stored;
  }

  replaceStored(settings: readonly LaneSetting[]): void {
    this.#stored = bySettingName(settings);
    this.#made = null;
  }

  /** Whether the configuration describes the lane, so that users cannot change it. */
  isConfigured(name: string): boolean {
    return isSaid(name, this.#current.value);
  }

  /** The lanes under other settings, or with other stored lanes. */
  under(settings: Settings, stored = this.#stored): Map<string, Lane> {
    const lanes = new Map(settings.lanes.map((lane) => [lane.name, lane]));
    for (const [name, setting] of stored) {
      const perAgent = lanes.get(name)?.perAgent ?? null;
      if (!isSaid(name, settings)) lanes.set(name, { ...toLane(setting, settings.options), perAgent });
    }
    return lanes;
  }
}

function isSaid(name: string, { options, describesTasksLane }: Settings): boolean {
  return name === TASKS_LANE ? describesTasksLane : Object.hasOwn(options.lanes, name);
}

function bySettingName(settings: readonly LaneSetting[]): Map<string, LaneSetting> {
  return new Map(settings.map((setting) => [setting.name, setting]));
}
