import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { RotaClient } from "../../src/client/index.ts";
import type { DoctorReport } from "../../src/interface/doctor.ts";
import { Chance } from "../chaos/chance.ts";
import { type PostgresServer, startPostgres } from "../postgres/server.ts";
import type { StorageName } from "./command-line.ts";
import { type DatabaseMeter, postgresMeter, sqliteMeter } from "./database-size.ts";
import { Batcher } from "./load/batcher.ts";
import { Listener, Passer } from "./load/listener.ts";
import { Planner } from "./load/planner.ts";
import { Reader } from "./load/reader.ts";
import { Submitter } from "./load/submitter.ts";
import { Talker } from "./load/talker.ts";
import type { Circumstances, User } from "./load/user.ts";
import { type Look, look } from "./look.ts";
import { openOutsideServers } from "./outside-servers.ts";
import { ServerProcess } from "./server-process.ts";
import { configFor, RETENTION_SEC } from "./settings.ts";
import { Tally } from "./tally.ts";

const LOOK_EVERY_MS = 3_000;
/** Until as much is deleted as comes in, nothing can be level: that is not looked at. */
const WARM_UP_MS: Readonly<Record<StorageName, number>> = {
  sqlite: (RETENTION_SEC + 15) * 1_000,
  // Tables grow until vacuum, which goes round once a minute, has found room in each of them.
  postgres: 180_000,
};
const STREAMS = 4;
/** Enough of them that each can wait for its answer and the load is still the same on a machine that is slow at times. */
const SUBMITTERS = 6;
/** What still runs when the users have left has ended by then. */
const CALM_MS = 8_000;

export interface SoakParams {
  readonly storage: StorageName;
  readonly lastsMs: number;
  readonly stop: AbortSignal;
  readonly say: (line: string) => void;
}

export interface SoakResult {
  readonly looks: readonly Look[];
  readonly tally: Tally;
  readonly callbacks: number;
  readonly doctor: DoctorReport;
  /** Whether the server ended with 0 after SIGTERM. */
  readonly endedWell: boolean;
  readonly keptForDaysBytes: number;
}

/** Mixed load on a real server, looked at every few seconds. */
export async function runSoak({ storage, lastsMs, stop, say }: SoakParams): Promise<SoakResult> {
  const folder = await mkdtemp(join(tmpdir(), "rota-soak-"));
  const chance = new Chance(1);
  const tally = new Tally();
  const outside = await openOutsideServers(chance.fork("surroundings"), tally.pickUp);
  const postgres = storage === "postgres" ? await startPostgres({ durable: true }) : null;
  let server: ServerProcess | null = null;
  let meter: DatabaseMeter | null = null;
  try {
    const configFile = join(folder, "rota.config.json");
    await writeFile(configFile, JSON.stringify(configFor(outside.agentsUrl)));
    const file = join(folder, "rota.db");
    server = await ServerProcess.start({ folder, storage: postgres?.url ?? `sqlite:${file}`, configFile });
    meter = await openMeter(postgres, file);
    const rota = new RotaClient({ url: server.url, retry: false });

    const leave = new AbortController();
    const { callbackUrl } = outside;
    const circumstances = { url: server.url, callbackUrl, chance, tally, stop: leave.signal };
    const work = Promise.all(users(circumstances).map((user) => user.run()));
    const looks = await lookAgainAndAgain(
      { rota, server, meter, tally },
      { warmUpMs: WARM_UP_MS[storage], lastsMs, stop, say },
    );
    leave.abort();
    await work;
    await delay(CALM_MS);
    const doctor = await rota.doctor();
    const { keptForDays } = await meter.read();
    const endedWell = await server.stop();
    const { callbacks } = outside;
    return { looks, tally, callbacks, doctor, endedWell, keptForDaysBytes: keptForDays };
  } finally {
    server?.kill();
    await meter?.close();
    outside.close();
    await postgres?.stop();
    await rm(folder, { recursive: true, force: true });
  }
}

function openMeter(postgres: PostgresServer | null, file: string): Promise<DatabaseMeter> | DatabaseMeter {
  return postgres === null ? sqliteMeter(file) : postgresMeter(postgres.url);
}

function users(circumstances: Circumstances): User[] {
  const several = (count: number, make: (number: number) => User) =>
    Array.from({ length: count }, (_, number) => make(number));
  return [
    ...several(SUBMITTERS, (number) => new Submitter(circumstances, number)),
    ...several(2, (number) => new Passer(circumstances, number)),
    new Batcher(circumstances),
    new Talker(circumstances),
    new Planner(circumstances),
    new Reader(circumstances),
    new Listener(circumstances),
    ...several(STREAMS, (number) => new Idler(circumstances, number)),
  ];
}

/** Reads a stream and discards its events: the stream is there as load. */
class Idler extends Listener {
  protected override async step(): Promise<void> {
    for await (const _ of this.rota.events({ signal: this.stop }));
  }
}

async function lookAgainAndAgain(
  subject: Pick<Parameters<typeof look>[0], "rota" | "server" | "meter" | "tally">,
  { warmUpMs, lastsMs, stop, say }: Omit<SoakParams, "storage"> & { readonly warmUpMs: number },
): Promise<Look[]> {
  const looks: Look[] = [];
  const begun = performance.now();
  let before = begun;
  while (performance.now() - begun < lastsMs) {
    await delay(LOOK_EVERY_MS, undefined, { signal: stop });
    const now = performance.now();
    const seen = await look({ ...subject, elapsedMs: now - before });
    before = now;
    if (now - begun < warmUpMs) continue;
    looks.push(seen);
    const { rss = 0, heap = 0, handles = 0, database = 0, submit99 = 0 } = seen;
    const figures = `${rss.toFixed(0)} MiB, heap ${heap.toFixed(1)}, ${handles} handles, database ${database.toFixed(1)}`;
    say(`${Math.round((now - begun) / 1_000)} s: ${figures}, submit p99 ${submit99.toFixed(1)} ms`);
  }
  return looks;
}
