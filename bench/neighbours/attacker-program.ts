/** The attacker, in a process of its own: prepares, attacks on request, and keeps its receivers open until it is stopped. */
import type { AttackName } from "./attack-names.ts";
import { NEW_ATTACK } from "./attacks/index.ts";
import { noRequests } from "./flood.ts";
import { HttpCaller } from "./http-caller.ts";
import { receive, say } from "./program-side.ts";
import type { NeighbourSizes } from "./sizes.ts";

export interface AttackerOrders {
  readonly attack: AttackName;
  readonly url: string;
  readonly key: string;
  readonly sizes: NeighbourSizes;
}

const CONNECTIONS = 20;
/** Making three thousand schedules at a hundred requests a second takes half of it. */
const PREPARE_MS_MAX = 60_000;

const orders = JSON.parse(process.argv[2] ?? "") as AttackerOrders;
const { url, key, sizes } = orders;
const attack = NEW_ATTACK[orders.attack]();
const counted = noRequests();
const node = new HttpCaller({ url, key, connections: CONNECTIONS });

function sceneFor(ms: number) {
  const endsAt = performance.now() + ms;
  return { node, sizes, counted, hasTime: () => performance.now() < endsAt };
}

await attack.prepare?.(sceneFor(PREPARE_MS_MAX));
say(null);
await receive();
await attack.run?.(sceneFor(sizes.windowSec * 1_000));
say(counted);
