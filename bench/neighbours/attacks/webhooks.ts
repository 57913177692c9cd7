import { countOfBatch, flood } from "../flood.ts";
import { ATTACKER_HOST, serveOn } from "../loopback-server.ts";
import type { Attack, Scene } from "./attack.ts";

const SILENT_PORTS = 400;
/** As many as one request takes. */
const BATCH = 100;

/** Callbacks to many ports of one host that accepts connections and never responds. */
export function silentHostAttack(): Attack {
  const urls: string[] = [];
  return {
    async prepare() {
      for (let n = 0; n < SILENT_PORTS; n++)
        urls.push(await serveOn(ATTACKER_HOST, (request) => void request.resume()));
    },
    run: (scene) => submitWithCallbacks(scene, { total: SILENT_PORTS, urlOf: (n) => urls[n] ?? "" }),
  };
}

/** Many callbacks to a receiver that responds with 500 at once, so that each is due again and again. */
export function failingReceiverAttack(): Attack {
  let url = "";
  return {
    async prepare() {
      url = await serveOn(ATTACKER_HOST, (request, response) => {
        request.resume();
        response.writeHead(500).end();
      });
    },
    run: (scene) =>
      submitWithCallbacks(scene, { total: scene.sizes.failingCallbacks, urlOf: () => `${url}/hook` }),
  };
}

/** The agent `index` echoes, so that the tasks end at once and only their callbacks are left. */
async function submitWithCallbacks(
  { node, counted, hasTime }: Scene,
  { total, urlOf }: { total: number; urlOf: (n: number) => string },
): Promise<void> {
  await flood({
    counted,
    connections: 1,
    goesOn: () => hasTime() && counted.accepted < total,
    request: async (n) => {
      const tasks = Array.from({ length: BATCH }, (_, index) => ({
        payload: null,
        callbackUrl: urlOf((n * BATCH + index) % total),
      }));
      return countOfBatch(await node.post("/tasks/batch", { tasks }), BATCH);
    },
  });
}
