import type { RotaClient } from "../../src/client/index.ts";
import type { Quantity } from "./curve.ts";
import type { DatabaseMeter } from "./database-size.ts";
import type { ServerProcess } from "./server-process.ts";
import type { Tally } from "./tally.ts";

const MIB = 2 ** 20;

const memory = { unit: "MiB", fault: "growing", slack: 0.1, slackAtLeast: 3 } as const;
// What another program on the machine does shows here more than anything else: twice as slow is what is minded.
const latency = { unit: "ms", fault: "growing", slack: 1, slackAtLeast: 3 } as const;

/** Every curve, in the order of the report. */
export const QUANTITIES = {
  rss: { name: "memory of the process", ...memory },
  heap: { name: "heap after collecting garbage", ...memory },
  handles: { name: "open files and sockets", unit: "", fault: "growing", slack: 0.1, slackAtLeast: 4 },
  database: { name: "database", ...memory, slack: 0.25 },
  // How much comes in differs a little: what is kept for each task, and for how long, must not.
  perTask: {
    name: "database, for each task kept",
    unit: "KiB",
    fault: "growing",
    slack: 0.15,
    slackAtLeast: 0.1,
  },
  kept: { name: "tasks kept, by how many end", unit: "s", fault: "growing", slack: 0.25, slackAtLeast: 5 },
  log: { name: "write-ahead log", ...memory },
  ended: { name: "tasks ended", unit: "/s", fault: "falling", slack: 0.2, slackAtLeast: 5 },
  submit50: { name: "submit, p50", ...latency },
  submit99: { name: "submit, p99", ...latency, slackAtLeast: 20 },
  pickUp50: { name: "submit to start, p50", ...latency },
  pickUp99: { name: "submit to start, p99", ...latency, slackAtLeast: 20 },
  list50: { name: "a page of tasks, p50", ...latency },
  lag50: { name: "event to its reader, p50", ...latency },
  lag99: { name: "event to its reader, p99", ...latency, slackAtLeast: 20 },
} as const satisfies Record<string, Quantity>;

export type QuantityName = keyof typeof QUANTITIES;
/** What was seen at one moment; what does not exist here is left out. */
export type Look = Readonly<Partial<Record<QuantityName, number>>>;

export interface LookParams {
  readonly rota: RotaClient;
  readonly server: ServerProcess;
  readonly meter: DatabaseMeter;
  readonly tally: Tally;
  /** Since the look before. */
  readonly elapsedMs: number;
}

export async function look({ rota, server, meter, tally, elapsedMs }: LookParams): Promise<Look> {
  const [submit50, submit99] = tally.submit.take([50, 99]);
  const [pickUp50, pickUp99] = tally.pickUp.take([50, 99]);
  const [lag50, lag99] = tally.lag.take([50, 99]);
  const [list50] = tally.list.take([50]);
  const ended = (tally.ended / elapsedMs) * 1_000;
  tally.ended = 0;
  const { rss, heap, handles } = await server.footprint(await rota.metrics());
  const { kept, log } = await meter.read();
  const { total } = await rota.tasks.counts();
  const seen = {
    rss: rss / MIB,
    heap: heap / MIB,
    handles: handles ?? undefined,
    database: kept / MIB,
    perTask: kept / 1_024 / total,
    kept: total / ended,
    log: log === null ? undefined : log / MIB,
    ended,
    submit50,
    submit99,
    pickUp50,
    pickUp99,
    list50,
    lag50,
    lag99,
  };
  const there = Object.entries(seen).filter(([, value]) => value !== undefined && Number.isFinite(value));
  return Object.fromEntries(there) as Look;
}
