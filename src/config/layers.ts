import { isObject } from "../model/input/field-checks.ts";

/**
 * A configuration put together from several places, later ones over earlier ones, that remembers where each value
 * came from.
 */
export class Layers {
  readonly #values: Record<string, unknown>;
  readonly #origins: { readonly path: readonly string[]; readonly origin: string }[] = [];

  constructor(values: Readonly<Record<string, unknown>>, origin: string) {
    this.#values = structuredClone(values);
    this.#origins.push({ path: [], origin });
  }

  get values(): Readonly<Record<string, unknown>> {
    return this.#values;
  }

  set(path: readonly string[], value: unknown, origin: string): void {
    this.#origins.unshift({ path, origin });
    let section = this.#values;
    for (const key of path.slice(0, -1)) {
      section[key] ??= {};
      // What should be a section and is not gets its own fault: there is nothing to set in it.
      if (!isObject(section[key])) return;
      section = section[key] as Record<string, unknown>;
    }
    section[path.at(-1) as string] = value;
  }

  /** Puts what `change` makes of a section in its place, if it is there. */
  change(section: string, change: (value: unknown) => unknown): void {
    if (Object.hasOwn(this.#values, section)) this.#values[section] = change(this.#values[section]);
  }

  /** Where the value at a path came from. */
  originOf(path: readonly PropertyKey[]): string {
    const found = this.#origins.find((entry) => entry.path.every((key, index) => key === path[index]));
    return found?.origin ?? "";
  }
}
