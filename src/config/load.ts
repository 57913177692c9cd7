import { apiKeyFaults } from "./api-keys.ts";
import { check, faultsError } from "./check.ts";
import { type ConfigFile, readConfigFile } from "./config-file.ts";
import { applyEnvironment } from "./environment.ts";
import { withoutZeros } from "./kept-values.ts";
import { Layers } from "./layers.ts";
import { fromText, OPTIONS } from "./options.ts";
import { type Config, configSchema } from "./schema.ts";
import { findWebhookSecret } from "./webhook-secret.ts";

export interface LoadConfigParams {
  /** The file to read instead of `rota.config.json` or `.yaml`; it has to exist. */
  readonly file?: string | undefined;
  /** Flags of the command line, by the path of the option: `{ "server.port": "8000" }`. */
  readonly flags?: Readonly<Record<string, string | undefined>>;
  readonly folder?: string;
  readonly environment?: Readonly<Record<string, string | undefined>>;
}

/** The configuration as written, with its sources, before it is checked and without defaults. */
export interface ReadConfig {
  readonly file: ConfigFile;
  readonly layers: Layers;
  /** Sentences about variables that look like options but are unknown. */
  readonly hints: readonly string[];
  readonly environment: Readonly<Record<string, string | undefined>>;
}

/** A valid configuration, with the secrets from the variables that it names. */
export interface CheckedConfig extends Config {
  readonly webhooks: Config["webhooks"] & { readonly secret?: string };
}

export interface LoadedConfig extends ReadConfig {
  readonly config: CheckedConfig;
}

/**
 * Reads the configuration: the file < `ROTA_…` variables < flags. Throws one `invalid_field` with everything that is
 * wrong.
 */
export function loadConfig(params: LoadConfigParams = {}): LoadedConfig {
  const read = readConfig(params);
  return { ...read, config: checkConfig(read) };
}

export function readConfig(params: LoadConfigParams): ReadConfig {
  const { file: named, flags = {}, folder = process.cwd(), environment = process.env } = params;
  const file = readConfigFile({ file: named, folder });
  const layers = new Layers(file.values, file.name);
  const hints = applyEnvironment(layers, environment);
  applyFlags(layers, flags);
  layers.change("scheduler", withoutZeros);
  return { file, layers, hints, environment };
}

/** Checks the configuration and adds all defaults. Throws one `invalid_field` with everything that is wrong. */
export function checkConfig({ file, layers, environment }: ReadConfig): CheckedConfig {
  const checked = check(configSchema, layers.values);
  const faults = [...file.faults];
  if (!checked.ok)
    faults.push(...checked.faults.map(({ path, message }) => `${message} (${layers.originOf(path)})`));
  const found = findWebhookSecret(layers.values["webhooks"], environment);
  if (!found.ok) faults.push(found.fault);
  // A missing key alone is reported where executors are made: `rota keys` needs none.
  if (faults.length > 0) faults.push(...apiKeyFaults(layers.values, environment));
  if (!checked.ok || !found.ok || faults.length > 0) throw faultsError(faults);
  const { webhooks } = checked.value;
  return found.secret === undefined
    ? checked.value
    : { ...checked.value, webhooks: { ...webhooks, secret: found.secret } };
}

function applyFlags(layers: Layers, flags: Readonly<Record<string, string | undefined>>): void {
  for (const { path, kind } of OPTIONS) {
    const text = flags[path.join(".")];
    if (text !== undefined) layers.set(path, fromText(text, kind), flagOf(path));
  }
}

/** `--port` for `server.port`, `--log-level` for `log.level`. */
function flagOf([section = "", ...rest]: readonly string[]): string {
  return `--${(section === "server" ? rest : [section, ...rest]).join("-")}`;
}
