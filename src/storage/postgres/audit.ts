import type { AuditEntry, AuditStorage } from "../storage.ts";
import type { PostgresDatabase } from "./database.ts";
import { cleanText } from "./text.ts";

/** Nothing here is counted or told in the log of events, so that nothing passes the gate. */
export function postgresAudit(db: PostgresDatabase): AuditStorage {
  return {
    async append({ entries }) {
      if (entries.length === 0) return;
      await db.read({
        name: "append_audit",
        text: `insert into audit_entry (at, tenant, key_id, route, subject, subject_digest)
               select at, tenant, key_id, route, subject, subject_digest
                 from unnest($1::bigint[], $2::text[], $3::text[], $4::text[], $5::text[], $6::text[]) with ordinality
                        as u(at, tenant, key_id, route, subject, subject_digest, place) order by place`,
        values: [
          entries.map(({ at }) => at),
          entries.map(({ tenant }) => tenant),
          entries.map(({ keyId }) => keyId),
          entries.map(({ route }) => cleanText(route)),
          entries.map(({ subject }) => (subject === null ? null : cleanText(subject))),
          entries.map(({ subjectDigest }) => subjectDigest),
        ],
      });
    },
    async list({ tenant, since = 0, keyId, limit, cursor }) {
      // Rows are compared and ordered by all columns of an index, so that no other index will do.
      const [row, key] =
        keyId === undefined ? ["tenant, at, seq", "$1"] : ["tenant, key_id, at, seq", "$1, $4"];
      const conditions = [
        `(${row}) >= (${key}, $2, 0) and (${row}) <= (${key}, 9e18::bigint, 9e18::bigint)`,
        ...(keyId === undefined ? [] : ["key_id is not null"]),
        ...(cursor === undefined ? [] : [`(at, seq) < (select at, seq from audit_entry where seq = $5)`]),
      ];
      const rows = await db.read<AuditRow>({
        name: `list_audit_${cursor === undefined}_${keyId === undefined}`,
        text: `select *, $4::text, $5::bigint from audit_entry where ${conditions.join(" and ")}
                order by ${row.replaceAll(/\w+/g, "$& desc")} limit $3`,
        values: [tenant, since, limit + 1, keyId ?? null, cursor ?? null],
      });
      const entries = rows.slice(0, limit).map(toEntry);
      return { entries, nextCursor: rows.length > limit ? (entries.at(-1)?.seq ?? null) : null };
    },
    async prune({ retentionMs, limit }) {
      const deleted = await db.write({
        name: "prune_audit",
        text: `delete from audit_entry where seq = any (array(
                 select seq from audit_entry
                  where at < coalesce($1::bigint, floor(extract(epoch from clock_timestamp()) * 1000)::bigint) - $2::bigint
                  order by at, seq limit $3)) returning seq`,
        values: [retentionMs, limit],
      });
      return { more: deleted.length === limit };
    },
  };
}

interface AuditRow {
  readonly seq: string;
  readonly at: string;
  readonly tenant: string;
  readonly key_id: string | null;
  readonly route: string;
  readonly subject: string | null;
  readonly subject_digest: string | null;
}

function toEntry({ seq, at, tenant, key_id: keyId, route, subject, ...row }: AuditRow): AuditEntry {
  const entry = { tenant, keyId, route, subject, subjectDigest: row.subject_digest };
  return { seq: Number(seq), at: Number(at), ...entry };
}
