import type { Settings } from "./settings.ts";

/**
 * The settings that hold right now. Whoever needs one asks here each time, so that a reload takes hold everywhere in
 * one step.
 */
export class CurrentSettings {
  #value: Settings;

  constructor(value: Settings) {
    this.#value = value;
  }

  get value(): Settings {
    return this.#value;
  }

  replace(value: Settings): void {
    this.#value = value;
  }
}
