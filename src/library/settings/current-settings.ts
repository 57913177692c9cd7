import type { Settings } from "./settings.ts";

/**
 * The settings that apply right now. Code reads them here each time it needs one, so that a reload applies everywhere in one
 * step.
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
