import { measureConcurrentSubmits, measureThroughput } from "../concurrent-submits.ts";
import { measureDrain } from "../drain.ts";
import { postgresStorage } from "../empty-storage.ts";
import { type Figure, figure, shareOf } from "../figure.ts";
import { inTurns } from "../in-turns.ts";
import type { Setting } from "../job.ts";
import { measureRawDrain, measureRawInserts } from "../postgres/raw-queue.ts";
import { measureSubmitMany } from "../submit-many.ts";
import { AT_ONCE } from "../workload.ts";

const SHARED = { tenants: 5, agents: 1_000 } as const;

/** Rota on PostgreSQL beside what PostgreSQL itself can do. */
export async function postgresJob({ postgresUrl, sizes, turns }: Setting): Promise<Figure[]> {
  const newStorage = postgresStorage({ postgresUrl });
  const tasks = sizes.drain;
  const inserts = { tasks: sizes.submit };
  const submits = { tasks: sizes.submit, callers: AT_ONCE };

  const drain = await inTurns(turns, {
    raw: () => measureRawDrain(newStorage, { tasks, batch: AT_ONCE, connections: 1 }),
    raw2: () => measureRawDrain(newStorage, { tasks, batch: 100, connections: 2 }),
    rota: () => measureDrain(newStorage, { tasks }),
    rota2: () => measureDrain(newStorage, { tasks, nodes: 2, atOnce: 100 }),
    rotaShared: () => measureDrain(newStorage, { tasks, ...SHARED }),
    rotaListening: () => measureDrain(newStorage, { tasks, listening: true }),
  });
  const submit = await inTurns(turns, {
    raw50: () => measureRawInserts(newStorage, { ...inserts, batch: 50 }),
    raw100: () => measureRawInserts(newStorage, { ...inserts, batch: 100 }),
    many: () => measureSubmitMany(newStorage, { tasks: sizes.submit, perCall: 100 }),
    concurrent: () => measureConcurrentSubmits(newStorage, submits),
    throughput: () => measureThroughput(newStorage, submits),
  });

  const drainGoal = { atLeast: 0.4, aim: 0.6 };
  return [
    figure("raw drain, 1 connection, 50 at a time", "tasks/s", drain.raw),
    figure("raw drain, 2 connections, 100 at a time", "tasks/s", drain.raw2),
    figure("drain, 1 node, 50 at once", "tasks/s", drain.rota),
    figure("drain, 2 nodes, 100 at once each", "tasks/s", drain.rota2),
    figure("drain, 1 node, 50 at once, with a listener", "tasks/s", drain.rotaListening),
    figure("drain, 1 node, 50 at once, 5 tenants with 1,000 agents each", "tasks/s", drain.rotaShared),
    shareOf("drain, 5 tenants with 1,000 agents / one with 20", {
      of: drain.rotaShared,
      against: drain.rota,
      goal: { atLeast: 0.6 },
    }),
    shareOf("drain, 1 node / raw, 1 connection", { of: drain.rota, against: drain.raw, goal: drainGoal }),
    shareOf("drain, 2 nodes / raw, 2 connections", { of: drain.rota2, against: drain.raw2, goal: drainGoal }),
    figure("raw inserts, 50 in a statement", "tasks/s", submit.raw50),
    figure("raw inserts, 100 in a statement", "tasks/s", submit.raw100),
    figure("submitMany of 100", "tasks/s", submit.many),
    figure("50 submits at once", "tasks/s", submit.concurrent),
    figure("50 submits at once, while they are run", "tasks/s", submit.throughput),
    shareOf("submitMany / raw, 100 in a statement", { of: submit.many, against: submit.raw100 }),
    shareOf("50 submits / raw, 50 in a statement", {
      of: submit.concurrent,
      against: submit.raw50,
      goal: { atLeast: 0.6 },
    }),
  ];
}
