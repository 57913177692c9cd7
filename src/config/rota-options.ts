import { isObject } from "../model/input/field-checks.ts";
import type { CheckedConfig, LoadedConfig } from "./load.ts";
import type { Config } from "./schema.ts";

/** The options for `createRota` and `rota.reload`. */
export interface ConfiguredOptions
  extends Omit<CheckedConfig, "server" | "log" | "scheduler" | "lanes" | "webhooks"> {
  readonly scheduler: Partial<CheckedConfig["scheduler"]>;
  readonly lanes: Readonly<Record<string, Config["lanes"][string]>>;
  readonly webhooks: Omit<CheckedConfig["webhooks"], "secretEnv">;
}

/**
 * The part of a configuration for the scheduler, in the form of `createRota`: with the webhook secret itself instead of its
 * variable. `scheduler` and `lanes` contain only what was written: a number that is left out keeps its value at a reload, and
 * users can change a lane that is left out.
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
