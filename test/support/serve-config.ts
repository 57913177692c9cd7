import { onTestFinished } from "vitest";
import { ConfigSource } from "../../src/config/config-source.ts";
import { rotaOptions } from "../../src/config/rota-options.ts";
import { silentLog } from "../../src/model/log.ts";
import { createRota } from "../../src/rota.ts";
import { listen } from "../../src/server/listen.ts";
import { type Answer, ask } from "./http.ts";

export interface ConfigParams {
  readonly environment?: Readonly<Record<string, string>>;
  /** Where the configuration may lie. */
  readonly folder: string;
  /** The configuration, if it lies elsewhere. */
  readonly file?: string;
}

export interface ConfiguredServer {
  readonly url: string;
  ask(path: string, init?: Parameters<typeof ask>[1]): Promise<Answer>;
}

/**
 * A server with a configuration as `rota serve` has one, on a free port and with nothing stored, in this process: it has the
 * code, and to start another takes longer than most of what is tested on it. It ends with the test.
 */
export async function serveConfig(params: ConfigParams): Promise<ConfiguredServer> {
  const flags = { "server.port": "0", storage: "sqlite::memory:" };
  const loaded = new ConfigSource({ environment: {}, ...params, flags }).load();
  const rota = await createRota({ ...rotaOptions(loaded), log: silentLog });
  onTestFinished(() => rota.stop({ graceMs: 0 }));
  const { config } = loaded;
  const server = await listen({ ...config.server, rota, config: () => config, log: silentLog });
  onTestFinished(() => server.close());
  await rota.start();
  return { url: server.url, ask: (path, init) => ask(server.url + path, init) };
}
