/** The server whose streams are measured, in a process of its own: a storage URL, then what it is asked about itself. */
import { silentLog } from "../../src/model/log.ts";
import { listen } from "../../src/server/listen.ts";
import { countStatements } from "../sqlite/count-statements.ts";
import { openRota } from "../workload.ts";

/** What a server with streams takes. */
export interface StreamCost {
  /** All that the process has, and what of it is in use. */
  readonly rssBytes: number;
  readonly usedBytes: number;
  /** Run so far. */
  readonly statements: number;
}

const [storage = ""] = process.argv.slice(2);
const rota = await openRota(storage, {});
await rota.start();
const { url } = await listen({ rota, log: silentLog, host: "127.0.0.1", port: 0 });
const statements = countStatements();

process.on("message", async () => {
  for (let times = 0; times < 3; times++) globalThis.gc?.();
  const { rss, heapUsed, external } = process.memoryUsage();
  const cost: StreamCost = {
    rssBytes: rss,
    usedBytes: heapUsed + external,
    statements: await statements.read(),
  };
  process.send?.(cost);
});
process.on("disconnect", () => process.exit());
process.send?.(url);
