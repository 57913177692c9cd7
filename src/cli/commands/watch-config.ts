import { isDeepStrictEqual } from "node:util";
import type { ConfigSource } from "../../config/config-source.ts";
import { ConfigWatcher, type Reloadable } from "../../config/config-watcher.ts";
import type { LoadedConfig } from "../../config/load.ts";
import { rotaOptions } from "../../config/rota-options.ts";
import type { Config } from "../../config/schema.ts";
import { watchFiles } from "../../config/watch-files.ts";
import type { Rota } from "../../interface/rota.ts";
import type { ServerLog } from "../terminal/log.ts";

/** How often the configuration is read, even if no file change is reported. */
const READ_EVERY_MS = 30_000;

export interface WatchConfigParams {
  readonly source: ConfigSource;
  readonly rota: Rota;
  /** The configuration at the start of the server. */
  readonly config: Config;
  /** Its level follows the configuration. */
  readonly log: ServerLog;
}

export interface ConfigWatch {
  /** The configuration that was applied last. */
  readonly config: Config;
  stop(): void;
}

/** Applies changes of the configuration to a running server. Reads it every 30 seconds, after a file change, and on SIGHUP. */
export function watchConfig(params: WatchConfigParams): ConfigWatch {
  const { source, log } = params;
  const served = new ServedConfig(params);
  const watcher = new ConfigWatcher(READ_EVERY_MS, () => served.load(), served);
  const unwatch = watchFiles(source.paths, () => watcher.look());
  const onHangup = () => {
    log.info({}, "reloading the configuration after SIGHUP");
    served.answerNextLook();
    watcher.look();
  };
  process.on("SIGHUP", onHangup);
  watcher.start();
  return {
    get config() {
      return served.config;
    },
    stop() {
      process.off("SIGHUP", onHangup);
      watcher.stop();
      unwatch();
    },
  };
}

/** Sections of the server, which it applies only at its start. */
const FIXED = ["server", "ui"] as const;

/**
 * Applies the configuration to the scheduler, which knows nothing of the HTTP server. After SIGHUP it always logs the outcome,
 * even if nothing changed.
 */
class ServedConfig implements Reloadable<LoadedConfig> {
  readonly #params: WatchConfigParams;
  config: Config;
  /** The values of the fixed sections that were last compared, so that each change is logged once. */
  #logged: Pick<Config, (typeof FIXED)[number]>;
  #fault: string | null = null;
  /** Whether SIGHUP asked for the next read, and for the current one. Then the outcome is logged. */
  #asked = false;
  #answering = false;

  constructor(params: WatchConfigParams) {
    this.#params = params;
    this.config = params.config;
    this.#logged = params.config;
  }

  answerNextLook(): void {
    this.#asked = true;
  }

  load(): LoadedConfig {
    this.#answering = this.#asked;
    this.#asked = false;
    return this.#params.source.loadAgain();
  }

  async reload(loaded: LoadedConfig): Promise<void> {
    const { rota, log } = this.#params;
    const { changed, needsRestart } = await rota.reload(rotaOptions(loaded));
    this.config = loaded.config;
    this.#logNeededRestart(loaded.config);
    const isLevelNew = this.#changeLevel(loaded.config.log);
    if (!this.#answering || changed.length > 0 || isLevelNew) return;
    if (needsRestart.length === 0) log.info({}, "the configuration has not changed");
    else log.info({ needsRestart }, "these options change only at the next start");
  }

  configFault(error: Error | null): void {
    const { rota, log } = this.#params;
    const fault = error?.message ?? null;
    rota.configFault(error);
    // A new fault has just been logged by `rota.configFault`.
    if (this.#answering && fault !== null && fault === this.#fault) {
      log.warn({}, `the configuration is still invalid and was not applied: ${fault}`);
    }
    this.#fault = fault;
  }

  #changeLevel({ level }: Config["log"]): boolean {
    const { log } = this.#params;
    if (level === log.level) return false;
    log.level = level;
    log.info({ changed: ["log.level"] }, `the log has the level ${level} from now on`);
    return true;
  }

  #logNeededRestart(wanted: Config): void {
    const { config, log } = this.#params;
    for (const name of FIXED) {
      const isLogged = isDeepStrictEqual(wanted[name], this.#logged[name]);
      if (isLogged || isDeepStrictEqual(wanted[name], config[name])) continue;
      log.warn(
        { needsRestart: [name] },
        `\`${name}\` changed, which takes effect when Rota is started again`,
      );
    }
    this.#logged = wanted;
  }
}
