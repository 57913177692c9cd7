import type { AgentName } from "../../../model/agent.ts";
import {
  AGENT_CHANGES_KEPT,
  type AgentRecord,
  type AgentStorage,
  ALL_AGENTS,
  type CatalogueChanges,
} from "../../storage.ts";
import { forgetAgents } from "../connection/abilities.ts";
import type { SqliteDatabase } from "../connection/database.ts";
import { agentChanged } from "../connection/steps/change-abilities.ts";
import type { Transaction } from "../connection/transaction.ts";
import { preemptAfterChange, refreshAgentQueues } from "./steps/refresh-limits.ts";

/** Limits of agents, and the catalogue. A row without a definition only holds a limit. */
export function sqliteAgents(db: SqliteDatabase): AgentStorage {
  return {
    async configure(params) {
      await db.transactDurably((tx) => saveBound(tx, params));
    },
    bounded: () =>
      db.read(() =>
        db
          .prepare<AgentName>(
            `select tenant, agent from agent
              where definition is null and max_inflight is not null order by tenant, agent`,
          )
          .all(),
      ),
    create: (record) => change(db, (tx) => !isListed(db, record) && save(tx, record)),
    update: (record) => change(db, (tx) => isListed(db, record) && save(tx, record)),
    delete: (agent) =>
      change(db, (tx) => {
        if (!isListed(db, agent)) return false;
        saveBound(tx, { ...agent, maxInflight: null });
        tx.prepare("delete from agent where tenant = ? and agent = ?").run(agent.tenant, agent.agent);
        agentChanged(tx, agent);
        return true;
      }),
    async list() {
      const rows = await db.read(() => listed(db));
      return rows.map(toRecord);
    },
    changes: (params) => db.read(() => readChanges(db, params)),
    async isKnown({ tenant, agent }) {
      const row = db
        .prepare<{ known: 0 | 1 }>(
          `select exists (select 1 from agent where tenant = @tenant and agent = @agent and definition is not null)
               or exists (select 1 from node_agent x join node n on n.id = x.node where x.agent = @agent and n.dead = 0)
               or exists (select 1 from agent_seen where agent = @agent)
               or exists (select 1 from worker_agent where tenant = @tenant and agent = @agent)
               or exists (select 1 from worker_agent_seen where tenant = @tenant and agent = @agent) as known`,
        )
        .get({ tenant, agent });
      return row?.known === 1;
    },
    async knownNames({ tenant, limit }) {
      const rows = db
        .prepare<{ agent: string }>(
          `select agent from agent where tenant = ? and definition is not null
           union select x.agent from node_agent x join node n on n.id = x.node where n.dead = 0
           union select agent from worker_agent where tenant = ? and agent <> '${ALL_AGENTS}'
           union select agent from worker_agent_seen where tenant = ?
           union select agent from agent_seen order by agent limit +?`,
        )
        .all(tenant, tenant, tenant, limit);
      return rows.map(({ agent }) => agent);
    },
    async forget() {
      forgetAgents(db);
    },
  };
}

interface ListedRow {
  readonly tenant: string;
  readonly agent: string;
  readonly max_inflight: number | null;
  readonly definition: string;
}

function listed(db: SqliteDatabase): ListedRow[] {
  return db
    .prepare<ListedRow>(
      "select tenant, agent, max_inflight, definition from agent where definition is not null order by tenant, agent",
    )
    .all();
}

function toRecord({ tenant, agent, max_inflight: maxInflight, definition }: ListedRow): AgentRecord {
  return { tenant, agent, maxInflight, definition: JSON.parse(definition) };
}

function readChanges(
  db: SqliteDatabase,
  { since, limit }: { since: number | null; limit: number },
): CatalogueChanges {
  const newest = db.prepare<{ seq: number | null }>("select max(seq) as seq from agent_change").get();
  const last = newest?.seq ?? 0;
  if (since === null || since > last || since < last - AGENT_CHANGES_KEPT) {
    return { whole: true, agents: listed(db).map(toRecord), gone: [], goneTenants: [], last, more: false };
  }
  const rows = db
    .prepare<
      { seq: number; tenant: string; agent: string } & Pick<ListedRow, "max_inflight"> & {
          definition: string | null;
        }
    >(
      `select c.seq, c.tenant, c.agent, a.max_inflight, a.definition
         from agent_change c left join agent a on a.tenant = c.tenant and a.agent = c.agent
        where c.seq > ? order by c.seq limit +?`,
    )
    .all(since, limit);
  return {
    whole: false,
    agents: rows.flatMap((row) =>
      row.definition === null ? [] : [toRecord({ ...row, definition: row.definition })],
    ),
    gone: rows.flatMap(({ tenant, agent, definition }) =>
      definition === null && agent !== "" ? [{ tenant, agent }] : [],
    ),
    goneTenants: rows.flatMap(({ tenant, agent }) => (agent === "" ? [tenant] : [])),
    last: rows.at(-1)?.seq ?? since,
    more: rows.length === limit,
  };
}

async function change(db: SqliteDatabase, work: (tx: Transaction) => boolean): Promise<boolean> {
  return db.transactDurably((tx) => {
    const done = work(tx);
    if (done) tx.signal("agents");
    return done;
  });
}

function isListed(db: SqliteDatabase, { tenant, agent }: AgentName): boolean {
  const row = db
    .prepare("select 1 from agent where tenant = ? and agent = ? and definition is not null")
    .get(tenant, agent);
  return row !== undefined;
}

function save(tx: Transaction, { definition, ...bound }: AgentRecord): true {
  saveBound(tx, bound);
  tx.prepare("update agent set definition = ? where tenant = ? and agent = ?").run(
    JSON.stringify(definition),
    bound.tenant,
    bound.agent,
  );
  agentChanged(tx, bound);
  return true;
}

function saveBound(
  tx: Transaction,
  { tenant, agent, maxInflight }: { tenant: string; agent: string; maxInflight: number | null },
): void {
  tx.prepare(
    `insert into agent (tenant, agent, max_inflight) values (?, ?, ?)
     on conflict (tenant, agent) do update set max_inflight = excluded.max_inflight`,
  ).run(tenant, agent, maxInflight);
  tx.prepare("update line set agent_max = ? where tenant = ? and agent = ?").run(maxInflight, tenant, agent);
  tx.db.agentQueues.clear();
  refreshAgentQueues(tx, "tenant = ? and agent = ?", [tenant, agent]);
  const lanes = tx
    .prepare<string>("select lane from line where tenant = ? and agent = ?")
    .pluck()
    .all(tenant, agent);
  preemptAfterChange(tx, lanes);
  tx.signal("work");
}
