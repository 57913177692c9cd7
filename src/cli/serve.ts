import { Command } from "commander";
import { loadConfig } from "../config/load.ts";
import type { Rota } from "../interface/rota.ts";
import type { Log } from "../model/log.ts";
import { shownStorageUrl } from "../model/storage-url.ts";
import { createRota } from "../rota.ts";
import { listen, type RunningServer } from "../server/listen.ts";
import { createLog } from "./log.ts";
import { stopSignal } from "./stop-signal.ts";

interface ServeFlags {
  readonly port?: string;
  readonly host?: string;
  readonly storage?: string;
  readonly config?: string;
}

/** `rota serve`: the scheduler and its HTTP server, until a signal ends them. */
export function serveCommand(): Command {
  return new Command("serve")
    .description("Run the scheduler and its HTTP server until SIGTERM or Ctrl-C.")
    .option("--port <number>", "port to listen on, 0 for a free one (default: 7682)")
    .option("--host <name>", "address to listen on: 127.0.0.1, localhost or ::1 (default: 127.0.0.1)")
    .option(
      "--storage <url>",
      'where tasks are kept: sqlite:FILE, sqlite::memory: or postgres://… (default: "sqlite:rota.db")',
    )
    .option("--config <file>", "configuration to read (default: rota.config.json, if there is one)")
    .action(serve);
}

async function serve(flags: ServeFlags): Promise<void> {
  const { config, hints } = loadConfig({
    file: flags.config,
    flags: { "server.port": flags.port, "server.host": flags.host, storage: flags.storage },
  });
  const log = createLog();
  for (const hint of hints) log.warn({}, hint);

  const { server: address, ...options } = config;
  const rota = await createRota({ ...options, log });
  const server = await start(rota, { ...address, log });
  const signalled = stopSignal();
  process.stdout.write(`Rota is ready at ${server.url} (storage ${shownStorageUrl(config.storage)})\n`);

  log.info({ signal: await signalled, graceSec: config.shutdownGraceSec }, "stopping");
  await rota.drain();
  await server.close();
  await rota.stop();
  log.info({}, "stopped");
  // An executor that ignored its signal may still hold a connection, and with it the process.
  process.exit(0);
}

/** Listens before anything runs: if the port is taken, no work has been started that would have to be interrupted. */
async function start(
  rota: Rota,
  params: { readonly host: string; readonly port: number; readonly log: Log },
): Promise<RunningServer> {
  let server: RunningServer | undefined;
  try {
    server = await listen({ rota, ...params });
    await rota.start();
    return server;
  } catch (error) {
    await server?.close();
    await rota.stop({ graceMs: 0 });
    throw error;
  }
}
