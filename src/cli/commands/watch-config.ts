import { isDeepStrictEqual } from "node:util";
import type { ConfigSource } from "../../config/config-source.ts";
import { ConfigWatcher, type Reloadable } from "../../config/config-watcher.ts";
import type { LoadedConfig } from "../../config/load.ts";
import { rotaOptions } from "../../config/rota-options.ts";
import type { Config } from "../../config/schema.ts";
import { watchFiles } from "../../config/watch-files.ts";
import type { Rota } from "../../interface/rota.ts";
import type { ServerLog } from "../terminal/log.ts";

/** How often the configuration is read, whether or not anything says that it changed. */
const READ_EVERY_MS = 30_000;

export interface WatchConfigParams {
  readonly source: ConfigSource;
  readonly rota: Rota;
  /** What the server was started with. */
  readonly config: Config;
  /** Its level follows the configuration. */
  readonly log: ServerLog;
}

export interface ConfigWatch {
  /** The configuration that was taken over last. */
  readonly config: Config;
  stop(): void;
}

/** Keeps a server as its configuration says: reads it now and then, soon after the file changed, and on SIGHUP. */
export function watchConfig(params: WatchConfigParams): ConfigWatch {
  const { source, log } = params;
  const served = new ServedConfig(params);
  const watcher = new ConfigWatcher(READ_EVERY_MS, () => served.load(), served);
  const unwatch = watchFiles(source.paths, () => watcher.look());
  const onHangup = () => {
    log.info({}, "reading the configuration again, as SIGHUP asks for");
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

/** Sections that are the server's, and that it takes over when it starts. */
const FIXED = ["server", "ui"] as const;

/**
 * Hands the scheduler what was read, which knows nothing of the server in front of it. Whoever sent a signal is told what
 * came of it, also when nothing did.
 */
class ServedConfig implements Reloadable<LoadedConfig> {
  readonly #params: WatchConfigParams;
  config: Config;
  /** What the log was told of what cannot change while the server listens. */
  #logged: Pick<Config, (typeof FIXED)[number]>;
  #fault: string | null = null;
  /** Whether somebody waits to hear of the next look, and of the one under way. */
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
    this.#tellOfFixed(loaded.config);
    const isLevelNew = this.#changeLevel(loaded.config.log);
    if (!this.#answering || changed.length > 0 || isLevelNew) return;
    if (needsRestart.length === 0) log.info({}, "the configuration is as it was: nothing changes");
    else log.info({ needsRestart }, "nothing changes until Rota is started again");
  }

  configFault(error: Error | null): void {
    const { rota, log } = this.#params;
    const fault = error?.message ?? null;
    rota.configFault(error);
    // What is new the log has just been told.
    if (this.#answering && fault !== null && fault === this.#fault) {
      log.warn({}, `the configuration still cannot be used, so that nothing changes: ${fault}`);
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

  #tellOfFixed(wanted: Config): void {
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
