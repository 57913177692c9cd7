import { existsSync, readFileSync } from "node:fs";
import { basename, extname, join, resolve } from "node:path";
import { isObject } from "../model/input/field-checks.ts";
import { parseJson } from "./parse-json.ts";
import { parseYaml } from "./parse-yaml.ts";
import type { ParsedText, TextFault } from "./parsed-text.ts";

/** The default names of the file. */
export const CONFIG_FILES = ["rota.config.json", "rota.config.yaml", "rota.config.yml"] as const;

/** A configuration is a page or two; more than this is another kind of file. */
const FILE_BYTES_MAX = 1_048_576;

const YAML_EXTENSIONS = [".yaml", ".yml"];

export interface ConfigFile {
  /** Its name in messages. */
  readonly name: string;
  /** False: there is no file, which is fine unless one was named. */
  readonly found: boolean;
  readonly values: Readonly<Record<string, unknown>>;
  /** Whole sentences; then `values` is empty. */
  readonly faults: readonly string[];
}

/** Reads the named file, or else the one of `CONFIG_FILES` that is in the folder. */
export function readConfigFile(params: {
  readonly file?: string | undefined;
  readonly folder: string;
}): ConfigFile {
  const { file, folder } = params;
  if (file !== undefined) return readFile(file, resolve(folder, file));
  const [name, ...others] = CONFIG_FILES.filter((candidate) => existsSync(join(folder, candidate)));
  if (name === undefined) return { name: CONFIG_FILES[0], found: false, values: {}, faults: [] };
  if (others.length === 0) return readFile(name, join(folder, name));
  const names = [name, ...others].join(" and ");
  return faulty(name, [`${names} are both there: keep one of them, or name it with --config`]);
}

function readFile(name: string, path: string): ConfigFile {
  let text: string;
  try {
    text = readFileSync(path, "utf8");
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException;
    const reason = code === "ENOENT" ? "there is no such file" : message;
    return faulty(name, [`cannot read the configuration ${name}: ${reason}`]);
  }
  return parseFile(name, text.replace(/^\ufeff/, ""));
}

function parseFile(name: string, text: string): ConfigFile {
  if (Buffer.byteLength(text) > FILE_BYTES_MAX) {
    return faulty(name, [`${name} is larger than ${FILE_BYTES_MAX} bytes: it cannot be a configuration`]);
  }
  // An editor empties a file before it writes it: a reader in between must not take it for the new configuration.
  if (text.trim() === "") return faulty(name, [`${name} is empty: write {} if nothing is to be configured`]);
  const parsed = parseText(name, text);
  if (!parsed.ok)
    return faulty(
      name,
      parsed.faults.map((fault) => sentence(name, fault)),
    );
  // A YAML file with only comments is an empty configuration.
  const values = parsed.value === null && isYaml(name) ? {} : parsed.value;
  if (isObject(values)) return { name, found: true, values, faults: [] };
  return faulty(name, [`${name} must hold an object, like { "server": { "port": 7682 } }`]);
}

function parseText(name: string, text: string): ParsedText {
  return isYaml(name) ? parseYaml(text) : parseJson(text);
}

function sentence(name: string, { message, line, column }: TextFault): string {
  const location = line === undefined ? name : `${name}:${line}:${column}`;
  if (isYaml(name)) return `${name} is not YAML: ${message} (${location})`;
  const hint = extname(name) === ".json" ? "" : "; a file of YAML has a name that ends in .yaml or .yml";
  return `${name} is not JSON: ${message} (${location})${hint}`;
}

function isYaml(name: string): boolean {
  return YAML_EXTENSIONS.includes(extname(basename(name)).toLowerCase());
}

function faulty(name: string, faults: readonly string[]): ConfigFile {
  return { name, found: true, values: {}, faults };
}
