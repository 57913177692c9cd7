import type { AuditEntry, AuditStorage } from "../storage.ts";
import type { SqliteDatabase } from "./database.ts";

export function sqliteAudit(db: SqliteDatabase): AuditStorage {
  return {
    async append({ entries }) {
      if (entries.length === 0) return;
      db.write(() => {
        const add = db.prepare(
          "insert into audit_entry (at, tenant, key_id, route, subject, subject_digest) values (?, ?, ?, ?, ?, ?)",
        );
        for (const { at, tenant, keyId, route, subject, subjectDigest } of entries)
          add.run(at, tenant, keyId, route, subject, subjectDigest);
      });
      await db.durable();
    },
    async list({ tenant, since = 0, keyId, limit, cursor }) {
      const rows = await db.read(() =>
        db
          .prepare<AuditEntry>(
            `select seq, at, tenant, key_id as keyId, route, subject, subject_digest as subjectDigest from audit_entry
              where tenant = @tenant and at >= @since ${keyId === undefined ? "" : "and key_id = @keyId"}
                ${cursor === undefined ? "" : BEFORE_CURSOR}
              order by at desc, seq desc limit +@limit`,
          )
          .all({ tenant, since, keyId, cursor, limit: limit + 1 }),
      );
      const entries = rows.slice(0, limit);
      return { entries, nextCursor: rows.length > limit ? (entries.at(-1)?.seq ?? null) : null };
    },
    async prune({ retentionMs, limit }) {
      const { changes } = db.write((now) =>
        db
          .prepare(
            "delete from audit_entry where seq in (select seq from audit_entry where at < ? order by at, seq limit +?)",
          )
          .run(now - retentionMs, limit),
      );
      return { more: changes === limit };
    },
  };
}

/** What is older than an entry that is gone is gone, too. */
const BEFORE_CURSOR = "and (at, seq) < (select at, seq from audit_entry where seq = @cursor)";
