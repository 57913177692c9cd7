import type { AgentRecord, AgentStorage } from "../storage.ts";
import { agentChanged, forgetAgents } from "./abilities.ts";
import type { SqliteDatabase } from "./database.ts";
import { preemptAfterChange, refreshLines } from "./lanes.ts";
import { Ledger } from "./ledger.ts";

/** Bounds of agents, and their catalogue. A row without a definition only holds a bound. */
export function sqliteAgents(db: SqliteDatabase): AgentStorage {
  return {
    async configure(params) {
      db.write((now) => saveBound(db, params, now));
      await db.durable();
    },
    bounded: () =>
      db.read(() =>
        db
          .prepare<{ tenant: string; agent: string }>(
            `select tenant, agent from agent
              where definition is null and max_inflight is not null order by tenant, agent`,
          )
          .all(),
      ),
    create: (record) => change(db, (now) => !isListed(db, record) && save(db, record, now)),
    update: (record) => change(db, (now) => isListed(db, record) && save(db, record, now)),
    delete: (agent) =>
      change(db, (now) => {
        if (!isListed(db, agent)) return false;
        saveBound(db, { ...agent, maxInflight: null }, now);
        db.prepare("delete from agent where tenant = ? and agent = ?").run(agent.tenant, agent.agent);
        agentChanged(db, agent, now);
        return true;
      }),
    async list() {
      const rows = await db.read(() =>
        db
          .prepare<{ tenant: string; agent: string; max_inflight: number | null; definition: string }>(
            "select tenant, agent, max_inflight, definition from agent where definition is not null order by tenant, agent",
          )
          .all(),
      );
      return rows.map(
        ({ tenant, agent, max_inflight: maxInflight, definition }): AgentRecord => ({
          tenant,
          agent,
          maxInflight,
          definition: JSON.parse(definition),
        }),
      );
    },
    async isKnown({ tenant, agent }) {
      const row = db
        .prepare<{ known: 0 | 1 }>(
          `select exists (select 1 from agent where tenant = @tenant and agent = @agent and definition is not null)
               or exists (select 1 from node_agent where agent = @agent)
               or exists (select 1 from agent_seen where agent = @agent) as known`,
        )
        .get({ tenant, agent });
      return row?.known === 1;
    },
    async knownNames({ tenant, limit }) {
      const rows = db
        .prepare<{ agent: string }>(
          `select agent from agent where tenant = ? and definition is not null
           union select agent from node_agent union select agent from agent_seen order by agent limit +?`,
        )
        .all(tenant, limit);
      return rows.map(({ agent }) => agent);
    },
    async forget() {
      forgetAgents(db);
    },
  };
}

async function change(db: SqliteDatabase, work: (now: number) => boolean): Promise<boolean> {
  const changed = db.write((now) => {
    const done = work(now);
    if (done) db.signal({ kind: "agents" });
    return done;
  });
  await db.durable();
  return changed;
}

function isListed(db: SqliteDatabase, { tenant, agent }: { tenant: string; agent: string }): boolean {
  const row = db
    .prepare("select 1 from agent where tenant = ? and agent = ? and definition is not null")
    .get(tenant, agent);
  return row !== undefined;
}

function save(db: SqliteDatabase, { definition, ...bound }: AgentRecord, now: number): true {
  saveBound(db, bound, now);
  db.prepare("update agent set definition = ? where tenant = ? and agent = ?").run(
    JSON.stringify(definition),
    bound.tenant,
    bound.agent,
  );
  agentChanged(db, bound, now);
  return true;
}

function saveBound(
  db: SqliteDatabase,
  { tenant, agent, maxInflight }: { tenant: string; agent: string; maxInflight: number | null },
  now: number,
): void {
  db.prepare(
    `insert into agent (tenant, agent, max_inflight) values (?, ?, ?)
     on conflict (tenant, agent) do update set max_inflight = excluded.max_inflight`,
  ).run(tenant, agent, maxInflight);
  db.prepare("update line set agent_max = ? where tenant = ? and agent = ?").run(maxInflight, tenant, agent);
  db.lines.clear();
  refreshLines(db, "tenant = ? and agent = ?", [tenant, agent]);
  const lines = new Ledger(db).linesOfAgent(tenant, agent);
  preemptAfterChange(
    db,
    lines.map(({ lane }) => lane),
    now,
  );
  db.signal({ kind: "work" });
}
