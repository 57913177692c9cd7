import type { Command } from "commander";
import { ConfigSource } from "../../config/config-source.ts";
import { joinWithOr } from "../../model/input/field-checks.ts";
import { LOG_LEVELS } from "../../model/log.ts";

/** The flags of every command that reads the configuration. */
export interface ConfigFlags {
  readonly port?: string;
  readonly host?: string;
  readonly storage?: string;
  readonly logLevel?: string;
  readonly config?: string;
}

/** Adds the flags that override the configuration file, and the flag that names the file. */
export function withConfigFlags(command: Command): Command {
  return command
    .option("--port <number>", "port to listen on, 0 for a free one (default: 7682)")
    .option(
      "--host <name>",
      "address to listen on: others than 127.0.0.1, localhost and ::1 need an API key (default: 127.0.0.1)",
    )
    .option(
      "--storage <url>",
      'where tasks are kept: sqlite:FILE, sqlite::memory: or postgres://… (default: "sqlite:rota.db")',
    )
    .option("--log-level <level>", `level of the log: ${joinWithOr(LOG_LEVELS)} (default: info)`)
    .option("--config <file>", "configuration to read (default: rota.config.json or .yaml, if there is one)");
}

export function configSource({ port, host, storage, logLevel, config }: ConfigFlags): ConfigSource {
  return new ConfigSource({
    file: config,
    flags: { "server.port": port, "server.host": host, storage, "log.level": logLevel },
  });
}
