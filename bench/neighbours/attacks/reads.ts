import { countOf, flood } from "../flood.ts";
import type { Attack } from "./attack.ts";

const VIEWERS = 10;
/** How long a viewer reads the events from the first on before it begins again. */
const REPLAY_MS = 500;

/** What viewers ask for in turn. The stored tasks have none of priority 0 and none in the lane `main`. */
const PATHS = [
  "/tasks",
  "/tasks?state=done",
  "/tasks?priority=0",
  "/tasks?lane=main",
  "/tasks?agentId=agent-1&priority=0",
  "/scheduler/stats",
];

/** Viewers who ask for lists again and again, in a table that holds many tasks. */
export function readsAttack(): Attack {
  return {
    run: ({ node, counted, hasTime }) =>
      flood({
        counted,
        connections: VIEWERS,
        goesOn: hasTime,
        request: async (n) => {
          const path = PATHS[n % (PATHS.length + 1)];
          return countOf(await (path === undefined ? node.replayEvents(REPLAY_MS) : node.get(path)));
        },
      }),
  };
}
