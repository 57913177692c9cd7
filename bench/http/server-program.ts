/** The servers that are measured, each in a process of its own: `bare`, `accepting` or `running`, then a storage URL. */
import Fastify from "fastify";
import { parseTaskInput, type TaskDefaults } from "../../src/model/input/task-input.ts";
import { silentLog } from "../../src/model/log.ts";
import { Redactor } from "../../src/model/redactor.ts";
import { DEFAULT_RETRY_POLICY } from "../../src/model/retry-policy.ts";
import { rfc3339 } from "../../src/model/text/rfc3339.ts";
import { listen } from "../../src/server/listen.ts";
import { openRota } from "../workload.ts";

export type ServerKind = "bare" | "accepting" | "running";

/** What any server of tasks has to do at least: read the request, check it, answer it. */
async function serveBare(): Promise<string> {
  const app = Fastify();
  const redactor = new Redactor([]);
  const defaults = (): TaskDefaults => ({
    now: Date.now(),
    timeoutMs: 120_000,
    timeoutMaxMs: 600_000,
    retryPolicy: DEFAULT_RETRY_POLICY,
    hasLane: () => true,
    laneOf: () => undefined,
    maxQueuedOf: () => null,
    sessionMaxConcurrent: 1,
    redactor,
  });
  let position = 0;
  app.post("/tasks", async (request, reply) => {
    parseTaskInput(request.body, defaults());
    position += 1;
    reply.code(202);
    return { taskId: `tsk_${position}`, state: "queued", position, createdAt: rfc3339(Date.now()) };
  });
  return app.listen({ host: "127.0.0.1", port: 0 });
}

async function serveRota(storage: string, { start }: { start: boolean }): Promise<string> {
  const rota = await openRota(storage, {});
  if (start) await rota.start();
  const { url } = await listen({ rota, log: silentLog, host: "127.0.0.1", port: 0 });
  return url;
}

const [kind = "bare", storage = ""] = process.argv.slice(2);
const url = kind === "bare" ? await serveBare() : await serveRota(storage, { start: kind === "running" });
process.send?.(url);
process.on("disconnect", () => process.exit());
