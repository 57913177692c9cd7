import { countOf, flood } from "../flood.ts";
import type { Attack } from "./attack.ts";

const PREVIEWS_PER_SECOND = 40;
/** Among the dearest, and in another time zone each time, so that nothing is remembered from the one before. */
const PREVIEWED = "0 0 1 * *";
const ZONES = Intl.supportedValuesOf("timeZone");
/** With what stands around it, just within the largest body. */
const PAYLOAD_BYTES = 1_048_000;

/** A thousand due times a request. */
export function previewsAttack(): Attack {
  return {
    run: ({ node, counted, hasTime }) =>
      flood({
        counted,
        connections: 4,
        perSecond: PREVIEWS_PER_SECOND,
        goesOn: hasTime,
        request: async (n) => {
          const body = { schedule: PREVIEWED, tz: ZONES[n % ZONES.length], count: 1_000 };
          return countOf(await node.post("/v1/schedules/preview", body));
        },
      }),
  };
}

/** Agents without end. */
export function newAgentsAttack(): Attack {
  return {
    run: ({ node, counted, hasTime }) =>
      flood({
        counted,
        connections: 4,
        goesOn: hasTime,
        request: async (n) =>
          countOf(await node.post("/v1/agents", { id: `new-${n}`, executor: { type: "echo" } })),
      }),
  };
}

/** Tasks as large as they may be; the agent `index` echoes them, so that their results are as large. */
export function bigBodiesAttack(): Attack {
  const body = JSON.stringify({ payload: "x".repeat(PAYLOAD_BYTES) });
  return {
    run: ({ node, counted, hasTime }) =>
      flood({
        counted,
        connections: 4,
        goesOn: hasTime,
        request: async () => countOf(await node.post("/tasks", body)),
      }),
  };
}
