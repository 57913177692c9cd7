import { join, resolve } from "node:path";
import { faultsError } from "./check.ts";
import { CONFIG_FILES } from "./config-file.ts";
import { checkConfig, type LoadConfigParams, type LoadedConfig, loadConfig, readConfig } from "./load.ts";

/**
 * The source of the configuration of a running process. Each load reads the file again; variables and flags stay as they were
 * at the start.
 */
export class ConfigSource {
  readonly #params: LoadConfigParams & { readonly folder: string };
  /** The file that was read last, if there was one. */
  #seen: string | null = null;

  constructor({ folder = process.cwd(), environment = process.env, ...params }: LoadConfigParams = {}) {
    this.#params = { ...params, folder, environment: { ...environment } };
  }

  /** Every path at which the file may appear. */
  get paths(): string[] {
    const { file, folder } = this.#params;
    return file === undefined ? CONFIG_FILES.map((name) => join(folder, name)) : [resolve(folder, file)];
  }

  /** For the start. Throws one `invalid_field` with everything that is wrong. */
  load(): LoadedConfig {
    const loaded = loadConfig(this.#params);
    this.#remember(loaded.file);
    return loaded;
  }

  /** For `rota.reload`. Throws as `load`, and also if the file has disappeared: that must not reset every option. */
  loadAgain(): LoadedConfig {
    const read = readConfig(this.#params);
    if (!read.file.found && this.#seen !== null) {
      throw faultsError([`${this.#seen} is gone: put it back, or start Rota again without it`]);
    }
    const config = checkConfig(read);
    this.#remember(read.file);
    return { ...read, config };
  }

  #remember({ found, name }: LoadedConfig["file"]): void {
    if (found) this.#seen = name;
  }
}
