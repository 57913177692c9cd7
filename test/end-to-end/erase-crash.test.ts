import { join } from "node:path";
import Sqlite from "better-sqlite3";
import { expect, test } from "vitest";
import { dumpSqlite } from "../upgrade/dump-sqlite.ts";
import { eventually, newFolder, startServer } from "./server-process.ts";

const TASKS = 3_000;
const WORD = "zanzibar";

test("the deletion of a tenant goes on after kill -9", { timeout: 120_000 }, async () => {
  const file = join(newFolder(), "rota.db");
  const environment = {
    ROTA_SCHEDULER_MAX_PER_AGENT: "10000",
    ROTA_SCHEDULER_MAX_QUEUE_SIZE: "10000",
    ROTA_SERVER_RATE_LIMIT_BURST: "10000",
  };
  const first = await startServer({ storage: `sqlite:${file}`, environment });
  const { id } = (await first.ask("/v1/tenants", { json: { name: "acme" } })).body;
  const admin = (await first.ask("/v1/keys", { json: { role: "admin", name: "me" } })).body.key;
  const asAdmin = { headers: { authorization: `Bearer ${admin}` } };
  const json = { role: "operator", name: "theirs", tenantId: id };
  const { key } = (await first.ask("/v1/keys", { ...asAdmin, json })).body;
  const headers = { authorization: `Bearer ${key}` };
  for (let sent = 0; sent < TASKS; sent += 100) {
    const runAt = new Date(Date.now() + 3_600_000).toISOString();
    const tasks = Array.from({ length: 100 }, (_, n) => ({ payload: `${WORD} ${sent + n}`, runAt }));
    const batch = { agentId: "a", tasks };
    expect((await first.ask("/tasks/batch", { headers, json: batch })).status).toBe(202);
  }
  // It never responds.
  first.ask(`/v1/tenants/${id}`, { ...asAdmin, method: "DELETE" }).catch(() => {});
  await eventually(() => isDeleting(file, id), "the deletion to begin");
  first.kill("SIGKILL");
  await first.ended;
  expect(isDeleting(file, id)).toBe(true);

  const second = await startServer({ storage: `sqlite:${file}`, environment });
  expect((await second.ask(`/v1/tenants/${id}`, asAdmin)).status).toBe(404);
  expect((await second.ask("/tasks", { headers })).status).toBe(401);
  await eventually(() => !dumpSqlite(file).includes(WORD), "the rest of it to be deleted");
  await eventually(() => tenantsIn(file) === 1, "the tenant to be gone");
  second.kill("SIGTERM");
  await second.ended;
});

function isDeleting(file: string, id: string): boolean {
  return look(file, "select count(*) from tenant where deleting = 1 and id = ?", id) === 1;
}

function tenantsIn(file: string): number {
  return look(file, "select count(*) from tenant");
}

function look(file: string, sql: string, ...values: string[]): number {
  const db = new Sqlite(file, { readonly: true });
  try {
    return db
      .prepare(sql)
      .pluck()
      .get(...values) as number;
  } finally {
    db.close();
  }
}
