import { RotaWorker } from "../../client/index.ts";
import { VERSION } from "../../version.ts";
import type { DemoWorld } from "./demo-agents.ts";

/** The agent whose tasks only the worker runs. */
export const TRANSLATOR = "translator";

/** The worker of the demo. It is in the process of the server and yet reaches it only over HTTP, as from another machine. */
export function demoWorker(url: string, { sleep, random }: DemoWorld): RotaWorker {
  return new RotaWorker({
    url,
    name: "gpu-1",
    slots: 2,
    version: VERSION,
    labels: { gpu: "a100" },
    graceMs: 0,
    agents: {
      [TRANSLATOR]: async (task, { signal, usage }) => {
        await sleep(800 + 700 * random(), signal);
        usage({ inputTokens: 420, outputTokens: 390 });
        return `${task.instruction}: done`;
      },
    },
  });
}
