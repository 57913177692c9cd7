import type { KeyRecord, KeyStorage } from "../../storage.ts";
import type { PostgresDatabase } from "../connection/database.ts";

/** API keys are not counted and publish no events, so that no write takes the write lock. */
export function postgresKeys(db: PostgresDatabase): KeyStorage {
  return {
    async create(key) {
      const [row] = await db.write<KeyRow>({
        name: "create_key",
        text: `insert into api_key (id, tenant, name, role, agent, hash, expires_at, agents, bounds, created_at)
               select $2, id, $4, $5, $6, $7, $8::bigint, $9::text[], $10::json, ${NOW} from tenant where id = $3 and not deleting
                  for key share
               returning *`,
        values: [
          key.id,
          key.tenant,
          key.name,
          key.role,
          key.agent,
          key.hash,
          key.expiresAt,
          key.agents ?? null,
          key.bounds == null ? null : JSON.stringify(key.bounds),
        ],
      });
      if (row === undefined) return null;
      db.signal({ kind: "keys" });
      return toRecord(row);
    },
    async findByHashes({ hashes }) {
      const rows = await db.read<KeyRow>({
        name: "find_keys",
        text: "select * from api_key where hash = any ($1)",
        values: [hashes],
      });
      return rows.map(toRecord);
    },
    async get({ tenant, id }) {
      const [row] = await db.read<KeyRow>({
        name: "get_key",
        text: "select * from api_key where tenant = $1 and id = $2",
        values: [tenant, id],
      });
      return row === undefined ? null : toRecord(row);
    },
    async list({ tenant }) {
      const rows = await db.read<KeyRow>({
        name: "list_keys",
        text: "select * from api_key where tenant = $1 order by created_at, id",
        values: [tenant],
      });
      return rows.map(toRecord);
    },
    async any() {
      const rows = await db.read({
        name: "any_key",
        text: "select 1 from api_key order by id limit 1",
        values: [],
      });
      return rows.length > 0;
    },
    async delete({ tenant, id }) {
      const deleted = await db.read({
        name: "delete_key",
        text: "delete from api_key where tenant = $1 and id = $2 returning id",
        values: [tenant, id],
      });
      if (deleted.length === 0) return false;
      db.signal({ kind: "keys" });
      return true;
    },
    async touch({ uses }) {
      if (uses.length === 0) return;
      // In a fixed order: two nodes that record uses of the same keys must not wait for each other.
      await db.read({
        name: "touch_keys",
        text: `with used as (
                 select k.id, u.at
                   from (select id, max(at) as at from unnest($1::text[], $2::bigint[]) u(id, at) group by id) u
                   join api_key k on k.id = u.id order by k.id for update of k)
               update api_key k set last_used_at = u.at from used u
                where k.id = u.id and coalesce(k.last_used_at, 0) < u.at`,
        values: [uses.map(({ id }) => id), uses.map(({ at }) => at)],
      });
    },
  };
}

const NOW = "coalesce($1::bigint, floor(extract(epoch from clock_timestamp()) * 1000)::bigint)";

interface KeyRow {
  readonly id: string;
  readonly tenant: string;
  readonly name: string;
  readonly role: string;
  readonly agent: string | null;
  readonly agents: string[] | null;
  readonly bounds: KeyRecord["bounds"];
  readonly hash: string;
  readonly created_at: string;
  readonly expires_at: string | null;
  readonly last_used_at: string | null;
}

function toRecord(row: KeyRow): KeyRecord {
  const { id, tenant, name, role, agent, agents, bounds, hash } = row;
  return {
    ...{ id, tenant, name, role, agent, agents, bounds, hash },
    createdAt: Number(row.created_at),
    expiresAt: row.expires_at === null ? null : Number(row.expires_at),
    lastUsedAt: row.last_used_at === null ? null : Number(row.last_used_at),
  };
}
