import { setTimeout as sleep } from "node:timers/promises";
import { Command } from "commander";
import { RotaClient, type RotaWorker } from "../../client/index.ts";
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
import { rotaCommand } from "../terminal/rota-command.ts";
import { UsageError } from "../terminal/usage-error.ts";
import { liveView } from "../views/live-view.ts";
import { addDemoAgents } from "./demo-agents.ts";
import { openReceiver } from "./demo-receiver.ts";
import { DEMO_OPTIONS, playRounds } from "./demo-rounds.ts";
import { demoWorker } from "./demo-worker.ts";
import { printEvents } from "./watch.ts";

interface DemoFlags {
  readonly port?: string;
  readonly for?: string;
  readonly lines?: boolean;
  readonly json?: boolean;
}

const DEFAULT_PORT = 7682;

/** `rota demo`: Rota at work, for new users. */
export function demoCommand(): Command {
  return new Command("demo")
    .description("Run a server in memory with demo agents, and watch its queue live.")
    .option("--port <number>", `port to listen on (default: ${DEFAULT_PORT}, or a free one if it is taken)`)
    .option("--for <seconds>", "stop after this time")
    .option("--lines", "print a line for each event, as when the output is not a terminal")
    .option("--json", "each event as JSON")
    .action(demo);
}

async function demo(flags: DemoFlags): Promise<void> {
  const forMs = flags.for === undefined ? undefined : secondsFlag("--for", flags.for) * 1_000;
  const interrupted = interruption();
  const rota = await createRota(DEMO_OPTIONS);
  const dashboard = new DashboardSource({
    basePath: "",
    environment: processEnvironment(),
    log: silentLog,
  });
  const world = {
    sleep: (ms: number, signal: AbortSignal) => sleep(ms, undefined, { signal }),
    random: Math.random,
  };
  const receiver = await openReceiver();
  let server: RunningServer | undefined;
  let worker: RotaWorker | undefined;
  try {
    server = await listenSomewhere(rota, dashboard, flags.port);
    addDemoAgents(rota, world);
    await rota.start();
    void dashboard.open();
    worker = demoWorker(server.url, world);
    await worker.start();
    const over = new AbortController();
    const patience = forMs === undefined ? [] : [AbortSignal.timeout(forMs)];
    const signal = AbortSignal.any([interrupted.signal, over.signal, ...patience]);
    let said = "";
    const say = (text: string) => {
      said = text;
    };
    const working = playRounds(rota, { ...world, callbackUrl: receiver.url, signal, say, hasWorker: true });
    await show(server.url, { ...flags, signal, caption: () => said });
    over.abort();
    await working;
    if (!flags.json) printNextSteps();
    process.exitCode = interrupted.exitCodeOfEndless();
  } finally {
    dashboard.stop();
    await worker?.stop();
    await rota.drain({ graceMs: 0 });
    await server?.close();
    await rota.stop();
    await receiver.close();
  }
}

/** The view is an ordinary client: any program can request what it shows. */
async function show(
  url: string,
  { lines, json, signal, caption }: DemoFlags & { signal: AbortSignal; caption: () => string },
): Promise<void> {
  const client = new RotaClient({ url, retry: false });
  const title = `Rota is ready at ${url}: a demo in memory, dashboard at ${url}/ui/`;
  if (!lines && !json && process.stdout.isTTY)
    return liveView(client, { title, caption, filter: {}, signal });
  if (!json) {
    print(title);
    for (const line of meanwhileLines(url)) print(line);
  }
  return printEvents(client, { after: 0, signal }, { json: json === true });
}

async function listenSomewhere(
  rota: Rota,
  dashboard: DashboardSource,
  port: string | undefined,
): Promise<RunningServer> {
  const open = (number: number) =>
    listen({ rota, dashboard, config: () => DEMO_OPTIONS, log: silentLog, host: "127.0.0.1", port: number });
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

/** Commands for a second terminal. */
function meanwhileLines(url: string): string[] {
  const rota = rotaCommand();
  return [
    "Try in another terminal:",
    ...columns([
      ["See why tasks wait:", `${rota} waiting --url ${url}`],
      ["See why one task waits:", `${rota} task TASK_ID --why --url ${url}`],
      ["Submit a task:", `${rota} submit --message "hello" --url ${url}`],
    ]),
  ];
}

function printNextSteps(): void {
  const rota = rotaCommand();
  print("The demo has stopped, and its data is gone. Try next:");
  const steps = columns([
    ["Start a server, which stores its tasks in rota.db:", `${rota} serve`],
    ["Submit a task to it, from another terminal:", `${rota} submit --message "hello" --wait`],
    ["Connect your own agent:", "docs/guides/first-agent.md"],
    ["See all commands:", `${rota} --help`],
  ]);
  for (const line of steps) print(line);
}

/** What to do, and the command to paste: without `#` comments, which zsh takes for arguments. */
function columns(rows: readonly (readonly [what: string, command: string])[]): string[] {
  const width = Math.max(...rows.map(([what]) => what.length));
  return rows.map(([what, command]) => `  ${what.padEnd(width)}  ${command}`);
}
