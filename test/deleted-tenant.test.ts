import { createHash } from "node:crypto";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import Sqlite from "better-sqlite3";
import { describe, expect, onTestFinished, test } from "vitest";
import { openPostgres } from "../src/storage/postgres/connection/open.ts";
import { openSqlite } from "../src/storage/sqlite/connection/open.ts";
import type { Storage } from "../src/storage/storage.ts";
import { ManualClock } from "../src/testing/manual-clock.ts";
import { until } from "../src/testing/signals.ts";
import { createTestDatabase } from "./postgres/database.ts";
import { serve } from "./support/http-server.ts";
import { type KeyedServer, openKeyedServer } from "./support/keyed-server.ts";
import { dumpPostgres } from "./upgrade/dump-postgres.ts";
import { dumpSqlite } from "./upgrade/dump-sqlite.ts";

/** In everything that the tenant writes; what follows says where. */
const WORD = "zanzibar";
/** The tenant's id stays in the audit log, and where nodes learn that its agents are gone. */
const TABLES_WITH_ID = /^insert into (?:rota\.)?"?(?:audit_entry|agent_change)\b/;

interface Opened {
  readonly storage: Storage;
  /** Every row of every table, one a line. */
  dump(): Promise<string>;
  /** Checks the write-ahead log, where there is one of its own. */
  checkLog?(): void;
  /** Checks the file, once the storage is closed. */
  checkClosed?(): void;
}

async function openSqliteFile(clock: ManualClock): Promise<Opened> {
  const folder = mkdtempSync(join(tmpdir(), "rota-erase-"));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  const path = join(folder, "rota.db");
  return {
    storage: await openSqlite({ path, clock }),
    dump: async () => dumpSqlite(path),
    checkLog: () => expect(readFileSync(`${path}-wal`).includes(WORD)).toBe(false),
    checkClosed() {
      const db = new Sqlite(path);
      db.exec("vacuum");
      db.close();
      expect(readFileSync(path).includes(WORD)).toBe(false);
    },
  };
}

async function openPostgresDatabase(clock: ManualClock): Promise<Opened> {
  const { url, drop } = await createTestDatabase();
  onTestFinished(drop);
  return { storage: await openPostgres({ url, clock }), dump: () => dumpPostgres(url) };
}

/** Writes the word into every free-form field there is, through the API, and lets work end in every way. */
async function plant(server: KeyedServer, key: string, callbackUrl: string): Promise<void> {
  const { rota, clock, askWith } = server;
  const post = async (path: string, json: unknown, method = "POST") => {
    await clock.advance(1_000);
    const { status, body } = await askWith(key, path, { method, json });
    expect([200, 201, 202], `${method} ${path}: ${JSON.stringify(body)}`).toContain(status);
    return body;
  };
  rota.agent("tells", async (_task, { progress }) => {
    progress({ text: `${WORD}-progress` });
    return { text: `${WORD}-result` };
  });
  rota.agent("fails", async () => {
    throw new Error(`${WORD}-error`);
  });
  await post("/v1/agents", { id: `${WORD}-agent`, executor: { type: "echo" } });
  const later = new Date(clock.now() + 86_400_000).toISOString();
  const ended = await post("/tasks", {
    agentId: "tells",
    payload: { text: `${WORD}-payload` },
    metadata: { text: `${WORD}-metadata` },
    callbackUrl: `${callbackUrl}/${WORD}-callback`,
    idempotencyKey: `${WORD}-idempotency`,
  });
  await post("/tasks", {
    ...{ agentId: "fails", instruction: `${WORD}-instruction`, llmConfig: { text: `${WORD}-config` } },
    retryPolicy: { maxRetries: 1, backoffMs: 80_000_000, maxBackoffMs: 80_000_000 },
  });
  await post("/tasks", {
    ...{ agentId: `${WORD}-agent`, action: "click", tabId: `${WORD}-tab`, selector: `${WORD}-selector` },
    ...{ ref: `${WORD}-ref`, params: { text: `${WORD}-params` }, runAt: later },
  });
  await post("/tasks", { message: `${WORD}-message`, concurrencyKey: `${WORD}-concurrency`, runAt: later });
  await post("/tasks", { payload: 1, dependsOn: [ended.taskId], metadata: { text: `${WORD}-dependant` } });
  const one = { key: `${WORD}-key`, payload: `${WORD}-first` };
  const other = { dependsOn: [`${WORD}-key`], payload: `${WORD}-second` };
  await post("/tasks/batch", { tasks: [one, other], callbackUrl: `${callbackUrl}/${WORD}-batch` });
  await post(`/v1/sessions/${WORD}-session/messages`, { agentId: "tells", message: `${WORD}-said` });
  await post(`/v1/sessions/${WORD}-pinned`, { cap: 3 }, "PATCH");
  const schedule = {
    ...{ schedule: "every 1 h", agent: "tells", name: `${WORD}-schedule`, message: `${WORD}-due` },
    ...{ conversation_id: `${WORD}-conversation`, session_key: `${WORD}-runs` },
    ...{ metadata: { text: `${WORD}-run-metadata` }, callback_url: `${callbackUrl}/${WORD}-run` },
  };
  const { scheduled_task } = await post("/v1/schedules", schedule);
  await post(`/v1/schedules/${scheduled_task.id}/run`, {});
  const failing = { schedule: "every 1 h", agent: "fails", message: "x", retry: { max_retries: 0 } };
  const { scheduled_task: bad } = await post("/v1/schedules", failing);
  await post(`/v1/schedules/${bad.id}/run`, {});
  await post("/v1/writs", { agent: "index", text: `/schedule in 5 hours: ${WORD}-writ` });
  await post("/v1/tasks/bulk", { action: "cancel", filter: { agentId: `${WORD}-nobody` } });
  await post("/v1/keys", { role: "viewer", name: `${WORD}-name-of-key` });
  const tenantId = (await askWith(key, "/v1/me")).body.tenantId as string;
  const runs = async () => (await rota.tenant(tenantId).runs.list()).runs;
  await clock.advance(5_000);
  await until(async () => (await runs()).every(({ status }) => status !== "running"), "the runs to end");
  await until(
    async () => (await rota.tenant(tenantId).webhooks.deliveries()).deliveries.some(({ tries }) => tries > 0),
    "a callback to be tried",
  );
  await rota.audit.list({ tenantId });
}

/** Where the word must have been before: otherwise its absence proves nothing. */
const PLANTED = [
  ...[
    "progress",
    "result",
    "error",
    "agent",
    "payload",
    "metadata",
    "callback",
    "idempotency",
    "instruction",
  ],
  ...[
    "config",
    "tab",
    "selector",
    "ref",
    "params",
    "message",
    "concurrency",
    "dependant",
    "key",
    "first",
    "second",
  ],
  ...["batch", "session", "said", "pinned", "schedule", "due", "conversation", "runs", "run-metadata", "run"],
  ...["writ", "nobody", "name-of-key", "name-of-tenant"],
];

describe.each<[string, (clock: ManualClock) => Promise<Opened>]>([
  ["SQLite", openSqliteFile],
  ["PostgreSQL", openPostgresDatabase],
])("on %s", (_name, open) => {
  test("no word of a deleted tenant is left in the database", async () => {
    const clock = new ManualClock();
    const { storage, dump, checkLog, checkClosed } = await open(clock);
    const callbackUrl = await serve((_request, response) => response.writeHead(500).end(`${WORD}-refusal`));
    const options = { webhooks: { allow: ["127.0.0.1"] } };
    const server = await openKeyedServer({ clock, storage, options });
    const { rota, key, askWith } = server;
    const admin = await key({ role: "admin" });
    const { id } = await rota.tenants.create({ name: `${WORD}-name-of-tenant` });
    await plant(server, await key({ role: "tenant-admin", tenantId: id }), callbackUrl);
    const before = await dump();
    for (const place of PLANTED) expect(before, `${WORD}-${place} was planted`).toContain(`${WORD}-${place}`);

    const deleted = askWith(admin, `/v1/tenants/${id}`, { method: "DELETE" });
    let isOver = false;
    void deleted.finally(() => {
      isOver = true;
    });
    // On several nodes it takes a moment until all know.
    while (!isOver) await clock.advance(1_000);
    expect((await deleted).body).toEqual({ deleted: true });
    checkLog?.();
    const rows = (await dump()).split("\n");
    expect(rows.filter((row) => row.includes(WORD))).toEqual([]);
    // Nor what a guess of a name would be recognized by.
    const digest = createHash("sha256").update(`${WORD}-session`).digest("base64url");
    expect(rows.filter((row) => row.includes(digest))).toEqual([]);
    expect(rows.filter((row) => row.includes(id) && !TABLES_WITH_ID.test(row))).toEqual([]);

    const { body } = await askWith(admin, `/v1/audit?tenantId=${id}&limit=1000`);
    const routes = body.entries.map(({ route }: { route: string }) => route);
    expect(routes).toEqual(expect.arrayContaining(["POST /tasks", "POST /v1/sessions/{key}/messages"]));
    expect((await rota.doctor()).checks.filter(({ ok }) => !ok)).toEqual([]);
    await rota.stop({ graceMs: 0 });
    checkClosed?.();
  });
});
