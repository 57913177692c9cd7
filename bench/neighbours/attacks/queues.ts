import { countOf, countOfBatch, flood } from "../flood.ts";
import { makeHangingAgent } from "./agents.ts";
import type { Attack } from "./attack.ts";

/** As many as one request takes. */
const BATCH = 100;
const YEAR_MS = 365 * 24 * 60 * 60_000;

/** Tasks of next year, until the queue is full and from then on. */
export function farTasksAttack(): Attack {
  const runAt = new Date(Date.now() + YEAR_MS).toISOString();
  const body = JSON.stringify({ tasks: Array.from({ length: BATCH }, () => ({ payload: null, runAt })) });
  return {
    run: ({ node, counted, hasTime }) =>
      flood({
        counted,
        connections: 2,
        perSecond: 20,
        goesOn: hasTime,
        request: async () => countOfBatch(await node.post("/tasks/batch", body), BATCH),
      }),
  };
}

/** Batches over twenty connections, each task of an agent of its own, which takes longer to store. */
export function batchesAttack(): Attack {
  const tasksOf = (n: number) =>
    Array.from({ length: BATCH }, (_, index) => ({ payload: null, agentId: `agent-${n}-${index}` }));
  return {
    run: ({ node, counted, hasTime }) =>
      flood({
        counted,
        connections: 20,
        goesOn: hasTime,
        request: async (n) => countOfBatch(await node.post("/tasks/batch", { tasks: tasksOf(n) }), BATCH),
      }),
  };
}

/** Each lane of the default configuration, with as many tasks as it runs at once. */
const LANES = { tasks: 20, main: 30, subagent: 50, team: 100, cron: 30 };

/** Tasks that hang in every lane before the victim has any work. */
export function hangingTasksAttack(): Attack {
  return {
    async prepare(scene) {
      await makeHangingAgent(scene);
      const lanes = Object.entries(LANES).flatMap(([lane, slots]) => Array<string>(slots).fill(lane));
      let left = lanes.length;
      await flood({
        counted: scene.counted,
        connections: 2,
        goesOn: () => left-- > 0,
        request: async (n) => {
          const task = { agentId: "hanging", lane: lanes[n], payload: null, timeout: 600_000 };
          return countOf(await scene.node.post("/tasks", task));
        },
      });
    },
  };
}
