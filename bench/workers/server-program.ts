/** A server whose tasks only workers run, in a process of its own, on the given storage. */
import { silentLog } from "../../src/model/log.ts";
import { createRota } from "../../src/rota.ts";
import { listen } from "../../src/server/listen.ts";
import { countStatements } from "../sqlite/count-statements.ts";
import { loadBacklog, schedulerOptions } from "../workload.ts";

export type ServerWord =
  | { readonly say: "load"; readonly tasks: number }
  | { readonly say: "count" }
  | { readonly say: "cost" }
  | { readonly say: "leave" };

export type ServerAnswer =
  | { readonly said: "ready"; readonly url: string }
  | { readonly said: "loaded" }
  | { readonly said: "counted"; readonly done: number }
  /** So far: processor time of the process, and statements of its SQLite connections. */
  | { readonly said: "cost"; readonly cpuMs: number; readonly statements: number };

const [storage = "", slots = "1"] = process.argv.slice(2);
const counter = countStatements();
const rota = await createRota({
  storage,
  // Tasks wait for workers that have yet to register.
  scheduler: { ...schedulerOptions({ atOnce: Number(slots) }), noExecutorSec: 3_600 },
});
await rota.start();
const server = await listen({ rota, log: silentLog, host: "127.0.0.1", port: 0 });

process.on("message", async (word: ServerWord) => {
  switch (word.say) {
    case "load":
      await loadBacklog(rota, { count: word.tasks });
      return send({ said: "loaded" });
    case "count": {
      const { counts } = await rota.tasks.counts();
      return send({ said: "counted", done: counts.done ?? 0 });
    }
    case "cost": {
      const { user, system } = process.cpuUsage();
      return send({ said: "cost", cpuMs: (user + system) / 1_000, statements: await counter.read() });
    }
    case "leave":
      await server.close();
      await rota.stop({ graceMs: 0 });
      process.disconnect();
  }
});
send({ said: "ready", url: server.url });

function send(answer: ServerAnswer): void {
  process.send?.(answer);
}
