// A chat gateway: messages typed in quick succession become one question, a correction interrupts, and /stop stops.
import { setTimeout as sleep } from "node:timers/promises";
import { createRota } from "rota";

const rota = await createRota({ storage: "sqlite::memory:", sessions: { debounceMs: 1_000 } });

rota.agent("assistant", async (task, { signal, progress }) => {
  progress(`thinks about ${JSON.stringify(task.message)}`);
  // Stands for a model that takes long over parcels. The signal fires when its answer is not wanted any more.
  await sleep(task.message?.includes("parcel") ? 60_000 : 100, undefined, { signal });
  return "It is on its way.";
});
await rota.start();

const key = "telegram:ada";
const receive = (message: string, mode: "queue" | "interrupt" = "queue") =>
  rota.sessions.send(key, { message, mode, agentId: "assistant" });

await receive("Where is");
await receive("my parcel?");

let corrected = false;
for await (const { type, progress, result, error } of rota.events({ after: 0, sessionKey: key })) {
  if (type === "task.progress") {
    console.log(progress);
    if (!corrected) await receive("Sorry: my letter?", "interrupt");
    corrected = true;
  }
  // The answer that will not come is empty: time to take the typing sign away.
  if (type === "task.cancelled") console.log(`says ${JSON.stringify(result)}: ${error}`);
  if (type === "task.completed") {
    console.log("says", result);
    break;
  }
}
console.log("stopped:", (await receive("/stop")).stopped);

await rota.stop();

// Prints:
// thinks about "Where is\nmy parcel?"
// says "": interrupted
// thinks about "Sorry: my letter?"
// says It is on its way.
// stopped: []
