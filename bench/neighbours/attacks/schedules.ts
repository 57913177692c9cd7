import { countOf, flood } from "../flood.ts";
import type { Attack } from "./attack.ts";

/** Schedules that are due every second, as many as the node accepts. */
export function fastSchedulesAttack(): Attack {
  return {
    async prepare({ node, counted, sizes, hasTime }) {
      await flood({
        counted,
        connections: 4,
        goesOn: () => hasTime() && counted.accepted < sizes.schedules,
        request: async () =>
          countOf(await node.post("/v1/schedules", { schedule: "every 1 second", payload: null })),
      });
    },
  };
}
