import type { Check, History } from "../history.ts";
import { abilities } from "./abilities.ts";
import { acceptedOnce } from "./accepted-once.ts";
import { attempts } from "./attempts.ts";
import { batches } from "./batches.ts";
import { bulks } from "./bulks.ts";
import { callbacks } from "./callbacks.ts";
import { calls } from "./calls.ts";
import { counted } from "./counted.ts";
import { dependants } from "./dependants.ts";
import { doctor } from "./doctor.ts";
import { dueMoments } from "./due-moments.ts";
import { edits } from "./edits.ts";
import { eventLog } from "./event-log.ts";
import { finishes } from "./finishes.ts";
import { limits } from "./limits.ts";
import { nothingLost } from "./nothing-lost.ts";
import { oneEnd } from "./one-end.ts";
import { sessionOrder } from "./session-order.ts";
import { walls } from "./walls.ts";

/** What a history must show, whatever was done to it. */
export const CHECKS: Readonly<Record<string, Check>> = {
  "nothing acknowledged is lost": nothingLost,
  "each submission creates one task": acceptedOnce,
  "every task ends, once": oneEnd,
  "no task has two live attempts": attempts,
  "each attempt calls its agent once": calls,
  "each end that a worker reports counts once": finishes,
  "a node starts only what it can execute": abilities,
  "no limit is exceeded": limits,
  "sessions keep their order": sessionOrder,
  "dependants follow their dependencies": dependants,
  "each batch completes once": batches,
  "bulk actions run to their end": bulks,
  "every end is sent to its callback URL": callbacks,
  "every due time has one row": dueMoments,
  "edits of schedules take effect": edits,
  "every event is sent once and in order": eventLog,
  "statistics match the events": counted,
  "no tenant sees objects of another": walls,
  "the doctor finds nothing": doctor,
};

export interface Finding {
  readonly promise: string;
  readonly said: string;
}

export function check(history: History): Finding[] {
  return Object.entries(CHECKS).flatMap(([promise, look]) =>
    look(history).map((said) => ({ promise, said })),
  );
}
