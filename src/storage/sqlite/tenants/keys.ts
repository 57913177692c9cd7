import type { KeyRecord, KeyStorage } from "../../storage.ts";
import type { SqliteDatabase } from "../connection/database.ts";

const COLUMNS = `
  id, tenant, name, role, agent, agents, bounds, hash, created_at as createdAt, expires_at as expiresAt, last_used_at as lastUsedAt`;

type KeyRow = Omit<KeyRecord, "agents" | "bounds"> & {
  readonly agents: string | null;
  readonly bounds: string | null;
};

function toRecord(row: KeyRow | undefined): KeyRecord | null {
  if (row === undefined) return null;
  return {
    ...row,
    agents: row.agents === null ? null : JSON.parse(row.agents),
    bounds: row.bounds === null ? null : JSON.parse(row.bounds),
  };
}

export function sqliteKeys(db: SqliteDatabase): KeyStorage {
  return {
    async create(key) {
      return db.transactDurably((tx) => {
        const row = tx
          .prepare<KeyRow>(
            `insert into api_key (id, tenant, name, role, agent, agents, bounds, hash, created_at, expires_at)
             select @id, id, @name, @role, @agent, @agents, @bounds, @hash, @now, @expiresAt from tenant where id = @tenant and deleting = 0
             returning ${COLUMNS}`,
          )
          .get({
            ...key,
            agents: key.agents == null ? null : JSON.stringify(key.agents),
            bounds: key.bounds == null ? null : JSON.stringify(key.bounds),
            now: tx.now,
          });
        if (row !== undefined) tx.signal("keys");
        return toRecord(row);
      });
    },
    // This does not wait for the disk: a caller got its key only after the key was durable.
    async findByHashes({ hashes }) {
      return db
        .prepare<KeyRow>(`select ${COLUMNS} from api_key where hash in (select value from json_each(?))`)
        .all(JSON.stringify(hashes))
        .flatMap((row) => toRecord(row) ?? []);
    },
    async get({ tenant, id }) {
      return toRecord(
        db.prepare<KeyRow>(`select ${COLUMNS} from api_key where tenant = ? and id = ?`).get(tenant, id),
      );
    },
    list: ({ tenant }) =>
      db.read(() =>
        db
          .prepare<KeyRow>(`select ${COLUMNS} from api_key where tenant = ? order by created_at, id`)
          .all(tenant)
          .flatMap((row) => toRecord(row) ?? []),
      ),
    async any() {
      return db.prepare("select 1 from api_key limit 1").get() !== undefined;
    },
    async delete({ tenant, id }) {
      return db.transactDurably((tx) => {
        const gone =
          tx.prepare("delete from api_key where tenant = ? and id = ?").run(tenant, id).changes === 1;
        if (gone) tx.signal("keys");
        return gone;
      });
    },
    async touch({ uses }) {
      db.transact((tx) => {
        const touch = tx.prepare(
          "update api_key set last_used_at = ? where id = ? and coalesce(last_used_at, 0) < ?",
        );
        for (const { id, at } of uses) touch.run(at, id, at);
      });
    },
  };
}
