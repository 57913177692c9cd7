import { measureConcurrentSubmits, measureThroughput } from "../concurrent-submits.ts";
import { measureDrain } from "../drain.ts";
import { sqliteStorage } from "../empty-storage.ts";
import { type Figure, figure, shareOf } from "../figure.ts";
import { inTurns } from "../in-turns.ts";
import type { Setting } from "../job.ts";
import { measureRawDrain, measureRawInserts } from "../sqlite/raw-queue.ts";
import { measureSubmitMany } from "../submit-many.ts";
import { AT_ONCE } from "../workload.ts";

/** Rota on a SQLite file beside what SQLite itself can do. */
export async function sqliteJob({ folder, sizes, turns }: Setting): Promise<Figure[]> {
  const newStorage = sqliteStorage({ folder });
  const drains = { folder, tasks: sizes.drain };
  const inserts = { folder, tasks: sizes.submit };
  const submits = { tasks: sizes.submit, callers: AT_ONCE };

  const drain = await inTurns(turns, {
    raw100: () => measureRawDrain({ ...drains, batch: 100, synchronous: "normal" }),
    raw50: () => measureRawDrain({ ...drains, batch: AT_ONCE, synchronous: "normal" }),
    raw100Full: () => measureRawDrain({ ...drains, batch: 100, synchronous: "full" }),
    raw50Full: () => measureRawDrain({ ...drains, batch: AT_ONCE, synchronous: "full" }),
    rota: () => measureDrain(newStorage, { tasks: sizes.drain }),
    rotaListening: () => measureDrain(newStorage, { tasks: sizes.drain, listening: true }),
  });
  const submit = await inTurns(turns, {
    raw100: () => measureRawInserts({ ...inserts, batch: 100, synchronous: "normal" }),
    raw100Full: () => measureRawInserts({ ...inserts, batch: 100, synchronous: "full" }),
    raw50Full: () => measureRawInserts({ ...inserts, batch: AT_ONCE, synchronous: "full" }),
    many: () => measureSubmitMany(newStorage, { tasks: sizes.submit, perCall: 100 }),
    concurrent: () => measureConcurrentSubmits(newStorage, submits),
    throughput: () => measureThroughput(newStorage, submits),
  });

  const drainGoal = { atLeast: 0.4, aim: 0.5 };
  return [
    figure("raw drain, 100 at a time, NORMAL", "tasks/s", drain.raw100),
    figure("raw drain, 50 at a time, NORMAL", "tasks/s", drain.raw50),
    figure("raw drain, 100 at a time, FULL", "tasks/s", drain.raw100Full),
    figure("raw drain, 50 at a time, FULL", "tasks/s", drain.raw50Full),
    figure("drain, 50 at once", "tasks/s", drain.rota),
    figure("drain, 50 at once, with a listener", "tasks/s", drain.rotaListening),
    shareOf("drain / raw, 100 at a time", { of: drain.rota, against: drain.raw100, goal: drainGoal }),
    shareOf("drain / raw, 50 at a time", { of: drain.rota, against: drain.raw50, goal: drainGoal }),
    figure("raw inserts, 100 at a time, NORMAL", "tasks/s", submit.raw100),
    figure("raw inserts, 100 at a time, FULL", "tasks/s", submit.raw100Full),
    figure("raw inserts, 50 at a time, FULL", "tasks/s", submit.raw50Full),
    figure("submitMany of 100", "tasks/s", submit.many),
    figure("50 submits at once", "tasks/s", submit.concurrent),
    figure("50 submits at once, while they are run", "tasks/s", submit.throughput),
    shareOf("submitMany / raw, 100 at a time, NORMAL", { of: submit.many, against: submit.raw100 }),
    shareOf("submitMany / raw, 100 at a time, FULL", {
      of: submit.many,
      against: submit.raw100Full,
      goal: { atLeast: 0.5 },
    }),
    shareOf("50 submits / raw, 100 at a time, FULL", {
      of: submit.concurrent,
      against: submit.raw100Full,
      goal: { atLeast: 0.4 },
    }),
    shareOf("50 submits / raw, 50 at a time, FULL", {
      of: submit.concurrent,
      against: submit.raw50Full,
      goal: { atLeast: 0.4 },
    }),
  ];
}
