import { readFileSync } from "node:fs";
import { join } from "node:path";
import { RotaError } from "../model/errors.ts";
import { isObject } from "../model/field-checks.ts";
import { check, faultsError } from "./check.ts";
import { applyEnvironment } from "./environment.ts";
import { Layers } from "./layers.ts";
import { fromText, OPTIONS } from "./options.ts";
import { type Config, configSchema } from "./schema.ts";

const CONFIG_FILE = "rota.config.json";

export interface LoadConfigParams {
  /** The file to read instead of `rota.config.json`; it has to be there. */
  readonly file?: string | undefined;
  /** What the command line says, by the path of the option: `{ "server.port": "8000" }`. */
  readonly flags?: Readonly<Record<string, string | undefined>>;
  readonly folder?: string;
  readonly environment?: Readonly<Record<string, string | undefined>>;
}

export interface LoadedConfig {
  readonly config: Config;
  /** Sentences about variables that are set but mean nothing, and look as if they should. */
  readonly hints: readonly string[];
}

/**
 * Reads the configuration: `rota.config.json` < `ROTA_…` variables < flags. Throws one `invalid_field` with everything
 * that is wrong.
 */
export function loadConfig(params: LoadConfigParams = {}): LoadedConfig {
  const { file, flags = {}, folder = process.cwd(), environment = process.env } = params;
  const layers = readConfigFile(file, folder);
  const hints = applyEnvironment(layers, environment);
  applyFlags(layers, flags);
  const checked = check(configSchema, layers.values);
  if (checked.ok) return { config: checked.value, hints };
  throw faultsError(checked.faults.map(({ path, message }) => `${message} (${layers.originOf(path)})`));
}

function readConfigFile(file: string | undefined, folder: string): Layers {
  const name = file ?? CONFIG_FILE;
  let text: string;
  try {
    text = readFileSync(file ?? join(folder, CONFIG_FILE), "utf8");
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code === "ENOENT" && file === undefined) return new Layers({}, name);
    const reason = code === "ENOENT" ? "there is no such file" : (error as Error).message;
    throw new RotaError("invalid_field", `cannot read the configuration ${name}: ${reason}`, {
      cause: error,
    });
  }
  return new Layers(parseConfigFile(text, name), name);
}

function parseConfigFile(text: string, name: string): Readonly<Record<string, unknown>> {
  let values: unknown;
  try {
    values = JSON.parse(text.replace(/^\ufeff/, ""));
  } catch (error) {
    throw new RotaError("invalid_field", `${name} is not JSON: ${(error as Error).message}`, {
      cause: error,
    });
  }
  if (isObject(values)) return values;
  throw new RotaError("invalid_field", `${name} must hold an object, like { "server": { "port": 7682 } }`);
}

function applyFlags(layers: Layers, flags: Readonly<Record<string, string | undefined>>): void {
  for (const { path, kind } of OPTIONS) {
    const text = flags[path.join(".")];
    if (text !== undefined) layers.set(path, fromText(text, kind), `--${path.at(-1)}`);
  }
}
