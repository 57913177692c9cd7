import { isObject } from "../model/input/field-checks.ts";

/**
 * A configuration merged from several sources, where later ones override earlier ones. It remembers the source of each value.
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
      // This should be a section: the check reports it as a fault.
      if (!isObject(section[key])) return;
      section = section[key] as Record<string, unknown>;
    }
    section[path.at(-1) as string] = value;
  }

  /** Replaces a section, if it exists, by what `change` returns. */
  change(section: string, change: (value: unknown) => unknown): void {
    if (Object.hasOwn(this.#values, section)) this.#values[section] = change(this.#values[section]);
  }

  /** The source of the value at a path. */
  originOf(path: readonly PropertyKey[]): string {
    const found = this.#origins.find((entry) => entry.path.every((key, index) => key === path[index]));
    return found?.origin ?? "";
  }
}
