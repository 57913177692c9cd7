import { request } from "node:http";
import type { Rota } from "../../../src/interface/rota.ts";
import type { ScheduledTask } from "../../../src/interface/schedules.ts";
import { silentLog } from "../../../src/model/log.ts";
import { createRota } from "../../../src/rota.ts";
import { createServer } from "../../../src/server/create-server.ts";
import { listen } from "../../../src/server/listen.ts";
import { createTestDatabase } from "../../postgres/database.ts";
import { type KnownRoute, routesOf } from "../../support/routes.ts";

export interface GarbageRoute extends KnownRoute {
  /** Bodies that are right, as the description of the API has them. */
  readonly examples: readonly unknown[];
}

export interface SentRequest {
  readonly method: string;
  readonly path: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: Buffer;
}

export interface SentAnswer {
  readonly status: number;
  readonly headers: Readonly<Record<string, unknown>>;
  readonly body: string;
}

export interface GarbageServer {
  readonly url: string;
  readonly rota: Rota;
  readonly routes: readonly GarbageRoute[];
  /** The errors that it logged as faults of its own. */
  readonly faults: readonly unknown[];
  /** The id of a task that is done. */
  readonly doneTask: string;
  send(sent: SentRequest): Promise<SentAnswer>;
  /** Everything that a request could leave behind. */
  stored(): Promise<unknown>;
  stop(): Promise<void>;
}

/**
 * A server to send garbage to, on either database. With a key, all that is sent comes from an admin: without one, the first
 * key that garbage makes would lock out all that comes after it.
 */
export async function startGarbageServer(
  storage: "SQLite" | "PostgreSQL",
  { withKey }: { readonly withKey: boolean },
): Promise<GarbageServer> {
  const database = storage === "PostgreSQL" ? await createTestDatabase() : undefined;
  const faults: unknown[] = [];
  const log = {
    ...silentLog,
    error: (fields: unknown, message: string) => faults.push({ message, fields }),
  };
  const rota = await createRota({
    storage: database?.url ?? "sqlite::memory:",
    // A request that waits for a message does not wait long, even if no node has an executor for its agent.
    scheduler: { maxQueueSize: 1_000_000, maxPerAgent: 1_000_000, noExecutorSec: 0 },
    sessions: { debounceMs: 20 },
    log,
  });
  const unlimited = { perSecond: 1_000_000, burst: 1_000_000, maxExpensive: 1_000 };
  // Garbage also makes tenants, and from the second one on each has a limit of its own.
  const rateLimit = { ...unlimited, ofTenant: unlimited };
  const server = await listen({ rota, log, host: "127.0.0.1", port: 0, rateLimit });
  const admin = withKey ? (await rota.keys.create({ role: "admin", name: "garbage" })).key : undefined;
  const authorization: Record<string, string> =
    admin === undefined ? {} : { authorization: `Bearer ${admin}` };
  // What is accepted is also run, so that a task that could be stored but not carried out shows itself.
  await rota.start();
  const { taskId: doneTask } = await rota.tasks.submit({ payload: 1 });
  await rota.tasks.wait(doneTask);
  const send = (sent: SentRequest) =>
    sendTo(server.url, { ...sent, headers: { ...authorization, ...sent.headers } });
  return {
    url: server.url,
    rota,
    faults,
    doneTask,
    send,
    routes: withExamples(await routesOf(createServer({ rota, log })), JSON.parse((await send(OPENAPI)).body)),
    async stored() {
      const { total } = await rota.tasks.counts();
      const { agents } = await rota.agents.list();
      const lanes = (await rota.lanes.list()).lanes.map(({ name, concurrency, total: bound }) => [
        name,
        concurrency,
        bound,
      ]);
      const { sessions } = await rota.sessions.list({ limit: 1_000 });
      const settings = sessions.map(({ running: _running, queued: _queued, ...session }) => session);
      const { schedules } = await rota.schedules.list();
      const { tenants } = await rota.tenants.list();
      const keys = (await rota.keys.list()).keys.map(({ id }) => id);
      return {
        tenants,
        keys,
        tasks: total,
        agents,
        lanes,
        sessions: settings,
        schedules: schedules.map(withoutRuns),
      };
    },
    async stop() {
      await server.close();
      await rota.stop({ graceMs: 0 });
      await database?.drop();
    },
  };
}

/** What users say of a schedule, and when that was. */
function withoutRuns({
  next_fire_at: _next,
  run_count: _count,
  last_run_at: _at,
  last_run_id: _id,
  last_status: _status,
  last_error: _error,
  ...said
}: ScheduledTask): unknown {
  return said;
}

const OPENAPI = { method: "GET", path: "/openapi.json" };

interface Described {
  readonly paths: Readonly<
    Record<
      string,
      Readonly<
        Record<string, { requestBody?: { content: { "application/json": { schema: { $ref: string } } } } }>
      >
    >
  >;
  readonly components: { readonly schemas: Readonly<Record<string, { examples: readonly unknown[] }>> };
}

/** No host name of the examples resolves: accepted tasks must not call out of this machine. */
function withExamples(routes: readonly KnownRoute[], { paths, components }: Described): GarbageRoute[] {
  return routes.map((route) => {
    const operation = paths[route.path.replaceAll(/:(\w+)/g, "{$1}")]?.[route.method.toLowerCase()];
    const name = operation?.requestBody?.content["application/json"].schema.$ref.split("/").at(-1) ?? "";
    const examples = JSON.stringify(components.schemas[name]?.examples ?? []);
    return { ...route, examples: JSON.parse(examples.replaceAll("example.com", "rota.invalid")) };
  });
}

/** `fetch` refuses to send much of this. */
function sendTo(url: string, { method, path, headers = {}, body }: SentRequest): Promise<SentAnswer> {
  const { hostname, port } = new URL(url);
  return new Promise((resolve, reject) => {
    const length = body === undefined ? {} : { "content-length": body.byteLength };
    const sent = request(
      { host: hostname, port, method, path, headers: { ...headers, ...length } },
      (response) => {
        const { statusCode: status = 0, headers: answered } = response;
        // A stream has no end to wait for.
        if (answered["content-type"]?.startsWith("text/event-stream")) {
          sent.destroy();
          resolve({ status, headers: answered, body: "" });
          return;
        }
        let text = "";
        response.setEncoding("utf8");
        response.on("data", (chunk) => {
          text += chunk;
        });
        response.on("end", () => resolve({ status, headers: answered, body: text }));
        response.on("error", reject);
      },
    );
    sent.on("error", reject);
    sent.end(body);
  });
}
