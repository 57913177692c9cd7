import { randomBytes } from "node:crypto";
import type { TenantApi } from "../interface/rota.ts";
import { goDurationSeconds } from "../model/text/go-duration.ts";
import type { McpBackend, McpCaller } from "./backend.ts";

export interface ApiBackendOptions {
  readonly caller: McpCaller;
  /** Rota as the caller may use it, for a client of this name and version; null: the client has not given any. */
  readonly rotaFor: (client: string | null) => TenantApi;
  /** The time of this machine, in milliseconds since 1970. */
  readonly now: () => number;
  /** Called with an error that is not Rota's. Returns the sentence for the client. */
  readonly onFailure: (error: unknown) => string;
}

/** A backend for one client: a Rota over HTTP, whose server records changes, or one in this process, which needs no key. */
export function apiBackend({ caller, rotaFor, now, onFailure }: ApiBackendOptions): McpBackend {
  let known: { readonly client: string | null; readonly rota: TenantApi } | null = null;

  function rota(client: string | null): TenantApi {
    if (known === null || known.client !== client) known = { client, rota: rotaFor(client) };
    return known.rota;
  }

  return {
    caller,
    secret: randomBytes(32),
    rota,
    async wait(taskId, { seconds, signal }) {
      const { tasks } = known?.rota ?? rota(null);
      try {
        return await tasks.wait(taskId, { timeoutMs: seconds * 1_000, signal });
      } catch (error) {
        if (!(error instanceof DOMException) || error.name !== "TimeoutError") throw error;
        return tasks.get(taskId);
      }
    },
    now,
    async retentionMs() {
      // Some roles may not read the configuration: then it is not known.
      const stats = await rota(known?.client ?? null)
        .stats()
        .catch(() => null);
      const seconds = stats === null ? null : goDurationSeconds(stats.config.resultTTL);
      return seconds === null ? null : seconds * 1_000;
    },
    changed() {},
    refused() {},
    failed: onFailure,
  };
}
