import { isObject } from "./input/field-checks.ts";
import { MASK } from "./text/mask.ts";
import { hasMask, maskInText } from "./text/mask-in-text.ts";

/** Names that are always secret in `llmConfig`, at any depth. */
const LLM_SECRETS = ["apiKey", "secretAccessKey", "sessionToken"];

type Names = ReadonlySet<string>;

/**
 * Masks values whose name is listed in `redact`; case does not matter. Returns the same object if there is nothing to mask. With
 * an empty list it searches nothing.
 */
export class Redactor {
  readonly #names: Names;
  readonly #llmNames: Names;
  readonly #inText: RegExp | null;

  constructor(names: readonly string[]) {
    this.#names = lowerCase(names);
    this.#llmNames = lowerCase([...names, ...LLM_SECRETS]);
    this.#inText = names.length === 0 ? null : namesInText(names);
  }

  /** Whether `redact` lists nothing: then only `llmConfig` has something to mask. */
  get isEmpty(): boolean {
    return this.#names.size === 0;
  }

  /** Masks any JSON value; in a text, the values after the names. */
  json<Value>(value: Value): Value {
    if (this.isEmpty) return value;
    return (typeof value === "string" ? this.text(value) : masked(value, this.#names)) as Value;
  }

  llmConfig<Value>(config: Value): Value {
    return masked(config, this.#llmNames) as Value;
  }

  /** A free-form field of a task. */
  field<Value>(name: string, value: Value): Value {
    return name === "llmConfig" ? this.llmConfig(value) : this.json(value);
  }

  /** An error or another text: masks the values of `"name": value`, `name=value` and `name: value`. */
  text(text: string): string {
    return this.#inText === null ? text : maskInText(text, this.#inText);
  }

  /** The path of the first mask in this field, like `llmConfig.apiKey`; undefined: there is none. */
  findMask(field: string, value: unknown): string | undefined {
    if (typeof value === "string")
      return this.#inText !== null && hasMask(value, this.#inText) ? field : undefined;
    const names = field === "llmConfig" ? this.#llmNames : this.#names;
    return names.size === 0 ? undefined : maskIn(value, names, field);
  }

  /** The secrets in this field that are strings. */
  secretsIn(field: string, value: unknown): string[] {
    const names = field === "llmConfig" ? this.#llmNames : this.#names;
    return names.size === 0 ? [] : secrets(value, names);
  }
}

function lowerCase(names: readonly string[]): Names {
  return new Set(names.map((name) => name.toLowerCase()));
}

/** Matches a name before its value, in JSON or in plain text. */
function namesInText(names: readonly string[]): RegExp {
  const either = names.map((name) => name.replace(/[\\^$.*+?()[\]{}|/]/g, "\\$&")).join("|");
  return new RegExp(`(?<![\\p{L}\\p{N}_])(?:${either})(\\\\*["'])?\\s*(?:=>|[:=])\\s*`, "giu");
}

function isSecret(name: string, value: unknown, names: Names): boolean {
  return value !== null && names.has(name.toLowerCase());
}

/** Copies only the objects and arrays that contain a mask. */
function masked(value: unknown, names: Names): unknown {
  if (Array.isArray(value)) {
    const items = value.map((item) => masked(item, names));
    return items.some((item, index) => item !== value[index]) ? items : value;
  }
  if (!isObject(value)) return value;
  let copy: Record<string, unknown> | null = null;
  for (const [name, inner] of Object.entries(value)) {
    const shown = isSecret(name, inner, names) ? MASK : masked(inner, names);
    if (shown === inner) continue;
    copy ??= { ...value };
    // Not by assignment, which would not set a field called `__proto__`.
    Object.defineProperty(copy, name, { value: shown, enumerable: true, configurable: true, writable: true });
  }
  return copy ?? value;
}

function maskIn(value: unknown, names: Names, path: string): string | undefined {
  if (typeof value !== "object" || value === null) return undefined;
  for (const [name, inner] of Object.entries(value)) {
    const innerPath = Array.isArray(value) ? `${path}[${name}]` : `${path}.${name}`;
    const found =
      !Array.isArray(value) && isSecret(name, inner, names)
        ? inner === MASK
          ? innerPath
          : undefined
        : maskIn(inner, names, innerPath);
    if (found !== undefined) return found;
  }
  return undefined;
}

function secrets(value: unknown, names: Names): string[] {
  if (Array.isArray(value)) return value.flatMap((item) => secrets(item, names));
  if (!isObject(value)) return [];
  return Object.entries(value).flatMap(([name, inner]) =>
    isSecret(name, inner, names) ? textsIn(inner) : secrets(inner, names),
  );
}

function textsIn(value: unknown): string[] {
  if (typeof value === "string") return [value];
  return typeof value === "object" && value !== null ? Object.values(value).flatMap(textsIn) : [];
}
