import { isObject } from "../model/input/field-checks.ts";
import type { CheckedConfig, LoadedConfig } from "./load.ts";
import type { Config } from "./schema.ts";

/** What `createRota` and `rota.reload` are told. */
export interface ConfiguredOptions
  extends Omit<CheckedConfig, "server" | "log" | "scheduler" | "lanes" | "webhooks"> {
  readonly scheduler: Partial<CheckedConfig["scheduler"]>;
  readonly lanes: Readonly<Record<string, Config["lanes"][string]>>;
  readonly webhooks: Omit<CheckedConfig["webhooks"], "secretEnv">;
}

/**
 * The part of a configuration that the scheduler is told, as a program tells it: with the secret, not where it is. Of
 * `scheduler` and `lanes` only what was said: a number that is not keeps its value when the configuration is read again,
 * and a lane that is not may be changed by users.
 */
export function rotaOptions({ config, layers }: Pick<LoadedConfig, "config" | "layers">): ConfiguredOptions {
  const { server: _server, log: _log, webhooks: withVariable, ...options } = config;
  const { secretEnv: __, ...webhooks } = withVariable;
  return {
    ...options,
    scheduler: onlySaid<ConfiguredOptions["scheduler"]>(options.scheduler, layers.values["scheduler"]),
    lanes: onlySaid<ConfiguredOptions["lanes"]>(options.lanes, layers.values["lanes"]),
    webhooks,
  };
}

function onlySaid<Some extends object>(section: Some, said: unknown): Some {
  const names = isObject(said) ? Object.keys(said) : [];
  const entries = Object.entries(section).filter(([name]) => names.includes(name));
  return Object.fromEntries(entries) as Some;
}
