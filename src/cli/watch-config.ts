import { isDeepStrictEqual } from "node:util";
import type { ConfigAgain, ConfigSource } from "../config/config-source.ts";
import { ConfigWatcher, type Reloadable } from "../config/config-watcher.ts";
import { rotaOptions } from "../config/rota-options.ts";
import type { Config } from "../config/schema.ts";
import { watchFiles } from "../config/watch-files.ts";
import type { Rota } from "../interface/rota.ts";
import type { Log } from "../model/log.ts";

/** How often the configuration is read, whether or not anything says that it changed. */
const READ_EVERY_MS = 30_000;

export interface WatchConfigParams {
  readonly source: ConfigSource;
  readonly rota: Rota;
  /** What the server was started with. */
  readonly server: Config["server"];
  readonly log: Log;
}

/**
 * Keeps a server as its configuration says: reads it now and then, soon after the file changed, and on SIGHUP. Returns
 * what ends it.
 */
export function watchConfig({ source, log, ...served }: WatchConfigParams): () => void {
  const watcher = new ConfigWatcher(READ_EVERY_MS, () => source.loadAgain(), reloadable({ ...served, log }));
  const unwatch = watchFiles(source.paths, () => watcher.look());
  process.on("SIGHUP", () => {
    log.info({}, "reading the configuration again, as SIGHUP asks for");
    watcher.look();
  });
  watcher.start();
  return () => {
    watcher.stop();
    unwatch();
  };
}

/** The scheduler knows nothing of the server in front of it, which cannot change while it listens. */
function reloadable(params: Omit<WatchConfigParams, "source">): Reloadable<ConfigAgain> {
  const { rota, server, log } = params;
  let told = server;
  return {
    async reload(config) {
      const { server: wanted } = config;
      await rota.reload(rotaOptions(config));
      if (isDeepStrictEqual(wanted, told)) return;
      told = wanted;
      if (isDeepStrictEqual(wanted, server)) return;
      log.warn(
        { needsRestart: ["server"] },
        "`server` changed, which takes effect when Rota is started again",
      );
    },
    configFault: (error) => rota.configFault(error),
  };
}
