import { Command } from "commander";
import { processEnvironment } from "../../config/process-environment.ts";
import { rotaOptions } from "../../config/rota-options.ts";
import type { Rota } from "../../interface/rota.ts";
import type { Log } from "../../model/log.ts";
import { shownStorageUrl } from "../../model/storage-url.ts";
import { createRota } from "../../rota.ts";
import { checkAddress, type ListenOptions, listen, type RunningServer } from "../../server/listen.ts";
import { DashboardSource } from "../dashboard/dashboard-source.ts";
import { type ConfigFlags, configSource, withConfigFlags } from "../flags/config-flags.ts";
import { createLog } from "../terminal/log.ts";
import { signalExitCode, stopSignal } from "../terminal/stop-signal.ts";
import { howToMakeKey } from "./first-key.ts";
import { watchConfig } from "./watch-config.ts";

/** `rota serve`: the scheduler and its HTTP server, until a signal ends them. */
export function serveCommand(): Command {
  return withConfigFlags(
    new Command("serve").description("Run the scheduler and its HTTP server until SIGTERM or Ctrl-C."),
  ).action(serve);
}

/** How long a stop may take beyond the grace period of running tasks. */
const STOP_SEC = 20;

async function serve(flags: ConfigFlags): Promise<void> {
  // SIGHUP reloads the configuration once the server runs. Until then it must not end the process.
  process.on("SIGHUP", () => {});
  const source = configSource(flags);
  const loaded = source.load();
  const { config } = loaded;
  const log = createLog(config.log);
  for (const hint of loaded.hints) log.warn({}, hint);

  process.on("SIGUSR1", () => log.info({}, "SIGUSR1 has no effect; send SIGHUP to reload the configuration"));
  const signalled = stopSignal();
  await checkAddress(config.server);
  const rota = await unlessStopped(createRota({ ...rotaOptions(loaded), log }), signalled);
  let current: () => object = () => config;
  const dashboard = config.ui.enabled
    ? new DashboardSource({ basePath: config.server.basePath, environment: processEnvironment(), log })
    : undefined;
  const server = await startUnlessStopped(
    rota,
    {
      ...config.server,
      config: () => current(),
      ...(dashboard === undefined ? {} : { dashboard }),
      howToMakeKey: howToMakeKey(config.storage),
      log,
    },
    signalled,
  );
  const watch = watchConfig({ source, rota, config, log });
  current = () => watch.config;
  const dashboardText =
    dashboard === undefined ? "" : `, dashboard at ${server.url}${config.server.basePath}/ui/`;
  process.stdout.write(
    `Rota is ready at ${server.url} (storage ${shownStorageUrl(config.storage)})${dashboardText}\n`,
  );
  // Only now, so that the dashboard does not delay the start.
  void dashboard?.open();

  const signal = await signalled;
  log.info({ signal }, signal === "SIGINT" ? "stopping; press Ctrl-C again to exit at once" : "stopping");
  watch.stop();
  dashboard?.stop();
  endInTime(watch.config.shutdownGraceSec, log);
  await rota.drain();
  await server.close();
  await rota.stop();
  log.info({}, "stopped");
  // An executor that ignored its abort signal may still hold a connection, which would keep the process alive.
  process.exit(0);
}

/** Exits on a signal while the database does not respond: nothing has started yet that would need a clean stop. */
async function unlessStopped<T>(opening: Promise<T>, signalled: Promise<NodeJS.Signals>): Promise<T> {
  let opened = false;
  void signalled.then((signal) => {
    if (!opened) process.exit(signalExitCode(signal));
  });
  const result = await opening;
  opened = true;
  return result;
}

/** The same if the database becomes unavailable after it was opened: draining ends the waits for it. */
async function startUnlessStopped(
  rota: Rota,
  params: Omit<ListenOptions, "rota">,
  signalled: Promise<NodeJS.Signals>,
): Promise<RunningServer> {
  let stoppedBy: NodeJS.Signals | undefined;
  void signalled.then((signal) => {
    stoppedBy = signal;
    void rota.drain();
  });
  try {
    return await start(rota, params);
  } catch (error) {
    if (stoppedBy !== undefined) process.exit(signalExitCode(stoppedBy));
    throw error;
  }
}

/** A storage that hangs must not keep the process alive. The next start requeues the tasks whose end was not written. */
function endInTime(graceSec: number, log: Log): void {
  const limitSec = graceSec + STOP_SEC;
  const end = () => {
    log.error({ limitSec }, "could not stop in time; the next start requeues the running tasks");
    process.exit(1);
  };
  setTimeout(end, limitSec * 1_000).unref();
}

/** Listens before any task runs: if the port is taken, there is no work to interrupt. */
async function start(rota: Rota, params: Omit<ListenOptions, "rota">): Promise<RunningServer> {
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
