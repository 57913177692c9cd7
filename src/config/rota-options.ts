import type { CheckedConfig } from "./load.ts";

/** The part of a configuration that the scheduler is told, as a program tells it: with the secret, not where it is. */
export function rotaOptions<Given extends Pick<CheckedConfig, "server" | "webhooks">>({
  server: _,
  webhooks: { secretEnv: __, ...webhooks },
  ...options
}: Given): Omit<Given, "server" | "webhooks"> & { webhooks: Omit<CheckedConfig["webhooks"], "secretEnv"> } {
  return { ...options, webhooks };
}
