import { setTimeout as delay } from "node:timers/promises";
import { countOfBatch, flood } from "../flood.ts";
import { ATTACKER_HOST, serveOn } from "../loopback-server.ts";
import { makeAgent, makeHangingAgent } from "./agents.ts";
import type { Attack, Scene } from "./attack.ts";

const PARENTS = 100;
const DEPENDANTS = 20;
const RESULT_BYTES = 1_000_000;
/** Of the lanes that the configuration has, the one that runs the most at once. */
const LANE = "team";

/** Tasks with large results, and tasks that are handed all of them and hold them for as long as their agent hangs. */
export function memoryAttack(): Attack {
  let parents: string[] = [];
  return {
    async prepare(scene) {
      const result = JSON.stringify("x".repeat(RESULT_BYTES));
      const url = await serveOn(ATTACKER_HOST, (request, response) => {
        request.resume();
        response.writeHead(200, { "content-type": "application/json" }).end(result);
      });
      await makeAgent(scene, { id: "large", url });
      await makeHangingAgent(scene);
      parents = await submitParents(scene);
    },

    async run({ node, counted }) {
      // Retries are what brings them back after each crash.
      const task = {
        agentId: "hanging",
        lane: LANE,
        payload: null,
        timeout: 600_000,
        retryPolicy: { maxRetries: 10 },
      };
      const tasks = Array.from({ length: DEPENDANTS }, () => ({ ...task, dependsOn: parents }));
      let left = 1;
      await flood({
        counted,
        connections: 1,
        goesOn: () => left-- > 0,
        request: async () => countOfBatch(await node.post("/tasks/batch", { tasks }), DEPENDANTS),
      });
    },
  };
}

/** Resolves once they have their results. */
async function submitParents({ node, hasTime }: Scene): Promise<string[]> {
  const parents: string[] = [];
  for (let n = 0; n < PARENTS; n++) {
    const { taskId } = await node.mustPost<{ taskId: string }>("/tasks", {
      agentId: "large",
      lane: LANE,
      payload: n,
    });
    parents.push(taskId);
  }
  while (hasTime()) {
    const { counts } = await node.mustGet<{ counts: { done: number } }>("/tasks/stats");
    if (counts.done >= PARENTS) break;
    await delay(200);
  }
  return parents;
}
