import { setTimeout as sleep } from "node:timers/promises";
import { Command } from "commander";
import { RotaClient } from "../../client/index.ts";
import { processEnvironment } from "../../config/process-environment.ts";
import type { Rota } from "../../interface/rota.ts";
import { RotaError } from "../../model/errors.ts";
import { silentLog } from "../../model/log.ts";
import { createRota } from "../../rota.ts";
import { listen, type RunningServer } from "../../server/listen.ts";
import { DashboardSource } from "../dashboard/dashboard-source.ts";
import { numberFlag, secondsFlag } from "../flags/flag-values.ts";
import { interruption } from "../terminal/interruption.ts";
import { print } from "../terminal/print.ts";
import { UsageError } from "../terminal/usage-error.ts";
import { liveView } from "../views/live-view.ts";
import { addDemoAgents, someTask } from "./demo-agents.ts";
import { printEvents } from "./watch.ts";

interface DemoFlags {
  readonly port?: string;
  readonly for?: string;
  readonly lines?: boolean;
  readonly json?: boolean;
}

const DEFAULT_PORT = 7682;
/** Between one task and the next. */
const PAUSE_MS = { min: 200, max: 1_000 } as const;
/** Beyond this many waiting tasks the demo pauses until the agents catch up. */
const WAITING_MAX = 40;

/** `rota demo`: Rota at work, for new users. */
export function demoCommand(): Command {
  return new Command("demo")
    .description("Run a server in memory with demo agents, and watch it live.")
    .option("--port <number>", `port to listen on (default: ${DEFAULT_PORT}, or a free one if it is taken)`)
    .option("--for <seconds>", "end by itself after so long")
    .option("--lines", "a line for each event, as when it is not written to a terminal")
    .option("--json", "each event as JSON")
    .action(demo);
}

async function demo(flags: DemoFlags): Promise<void> {
  const forMs = flags.for === undefined ? undefined : secondsFlag("--for", flags.for) * 1_000;
  const interrupted = interruption();
  const rota = await createRota({ storage: "sqlite::memory:" });
  const dashboard = new DashboardSource({
    basePath: "",
    environment: processEnvironment(),
    log: silentLog,
  });
  let server: RunningServer | undefined;
  try {
    server = await listenSomewhere(rota, dashboard, flags.port);
    addDemoAgents(rota, Math.random);
    await rota.start();
    void dashboard.open();
    const over = new AbortController();
    const patience = forMs === undefined ? [] : [AbortSignal.timeout(forMs)];
    const signal = AbortSignal.any([interrupted.signal, over.signal, ...patience]);
    const working = keepSubmitting(rota, signal);
    await show(server.url, { ...flags, signal });
    over.abort();
    await working;
    process.exitCode = interrupted.exitCodeOfEndless();
  } finally {
    dashboard.stop();
    await rota.drain({ graceMs: 0 });
    await server?.close();
    await rota.stop();
  }
}

/** The view is an ordinary client: any program can request what it shows. */
async function show(
  url: string,
  { lines, json, signal }: DemoFlags & { signal: AbortSignal },
): Promise<void> {
  const client = new RotaClient({ url, retry: false });
  const title = `Rota is ready at ${url}: a demo, kept in memory, dashboard at ${url}/ui/`;
  if (!lines && !json && process.stdout.isTTY) return liveView(client, { title, filter: {}, signal });
  if (!json) print(title);
  return printEvents(client, { after: 0, signal }, { json: json === true });
}

async function listenSomewhere(
  rota: Rota,
  dashboard: DashboardSource,
  port: string | undefined,
): Promise<RunningServer> {
  const open = (number: number) =>
    listen({ rota, dashboard, log: silentLog, host: "127.0.0.1", port: number });
  if (port !== undefined) return open(checkPort(port));
  try {
    return await open(DEFAULT_PORT);
  } catch (error) {
    if (error instanceof RotaError && error.code === "conflict") return open(0);
    throw error;
  }
}

function checkPort(text: string): number {
  const port = numberFlag(text);
  if (typeof port === "number" && Number.isInteger(port) && port >= 0 && port <= 65_535) return port;
  throw new UsageError(`--port must be an integer from 0 to 65535, not ${text}`);
}

/** Submits tasks, and now and then a batch, until the signal fires. */
async function keepSubmitting(rota: Rota, signal: AbortSignal): Promise<void> {
  const { min, max } = PAUSE_MS;
  while (!signal.aborted) {
    const { queue } = await rota.stats();
    if (queue.totalQueued < WAITING_MAX) {
      const count = Math.random() < 0.1 ? 6 : 1;
      await rota.tasks.submitMany(Array.from({ length: count }, () => someTask(Math.random)));
    }
    await sleep(min + Math.random() * (max - min), undefined, { signal }).catch(() => {});
  }
}
