// A chat gateway where "remind me in 10 minutes" works: the reminder comes back to the chat that asked for it.
import type { RotaEvent } from "rota";
import { createTestRota, nextEvent } from "rota/testing";

// Its clock stands still until the program moves it, so that this example does not take ten minutes. Yours is `createRota`.
const { rota, clock } = await createTestRota({ sessions: { debounceMs: 0 } });

// Stands for a model that may plan: it writes a /schedule line into its answer, and Rota carries it out.
rota.agent("assistant", {
  writs: true,
  executor: async ({ message = "", scheduleId }) => {
    if (scheduleId !== undefined) return `You wanted to ${message}.`;
    const [, phrase, what] = /^remind me (in .+) to (.+)$/.exec(message) ?? [];
    return phrase === undefined ? "Hello!" : `I will.\n/schedule ${phrase}: ${what}`;
  },
});
await rota.start();

// The side of the messenger: it passes messages on, and shows every answer in the chat that its event names.
const answer = () => nextEvent(rota, ({ type }) => type === "task.completed");
function show({ sessionKey, scheduleId, result }: RotaEvent): void {
  const from = scheduleId === undefined ? "" : ` (schedule ${scheduleId})`;
  console.log(`${sessionKey}${from}: ${String(result).split("\n")[0]}`);
}
async function receive(chat: string, message: string): Promise<void> {
  const answered = answer();
  await rota.sessions.send(chat, { message, agentId: "assistant" });
  show(await answered);
}

await receive("telegram:ada", "remind me in 10 minutes to drink water");
await receive("telegram:bob", "hi");

const reminded = answer();
await clock.advance(10 * 60_000);
show(await reminded);
await rota.stop();

// Prints:
// telegram:ada: I will.
// telegram:bob: Hello!
// telegram:ada (schedule 1): You wanted to drink water.
