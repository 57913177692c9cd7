import type { AuditChainPoint, AuditEntry, AuditStorage, ListAuditParams } from "../../storage.ts";
import { withoutMaker } from "../../without-maker.ts";
import type { PostgresDatabase } from "../connection/database.ts";
import { readSql } from "../connection/sql-file.ts";
import { cleanText } from "../connection/text.ts";

/** Audit entries are not counted and publish no events, so that no write takes the write lock. */
export function postgresAudit(db: PostgresDatabase): AuditStorage {
  return {
    async append({ entries }) {
      if (entries.length === 0) return;
      const column = <Value>(value: (entry: (typeof entries)[number]) => Value) => entries.map(value);
      await db.read({
        name: "append_audit",
        text: `insert into audit_entry (at, tenant, key_id, route, subject, subject_digest, subject_salt, address, status, count,
                                        chain, number, previous_hash, hash, provenance)
               select at, tenant, key_id, route, case when is_named then subject end, subject_digest,
                      case when is_named then subject_salt end, address, status, count, chain, number, previous_hash, hash,
                      case when is_there then provenance else anonymous end
                 from unnest($1::bigint[], $2::text[], $3::text[], $4::text[], $5::text[], $6::text[], $7::text[], $8::text[],
                             $9::integer[], $10::integer[], $11::text[], $12::bigint[], $13::text[], $14::text[], $15::text[], $16::text[])
                        with ordinality
                        as u(at, tenant, key_id, route, subject, subject_digest, subject_salt, address, status, count,
                             chain, number, previous_hash, hash, provenance, anonymous, ordinal)
                      cross join lateral (
                        select exists (select from tenant t where t.id = u.tenant and not t.deleting) as is_there) t
                      cross join lateral (select subject_digest is null or is_there as is_named) n
                order by ordinal`,
        values: [
          column(({ at }) => at),
          column(({ tenant }) => tenant),
          column(({ keyId }) => keyId),
          column(({ route }) => cleanText(route)),
          column(({ subject }) => (subject === null ? null : cleanText(subject))),
          column(({ subjectDigest }) => subjectDigest),
          column(({ subjectSalt }) => subjectSalt),
          column(({ address }) => address),
          column(({ status }) => status),
          column(({ count }) => count),
          column(({ chain }) => chain),
          column(({ number }) => number),
          column(({ previousHash }) => previousHash),
          column(({ hash }) => hash),
          column(({ provenance }) => provenance),
          column(({ provenance }) => provenance && withoutMaker(provenance)),
        ],
      });
    },
    async list(params) {
      const { limit } = params;
      const rows = await db.read<AuditRow>(listOfAudit(params));
      const entries = rows.slice(0, limit).map(toEntry);
      return { entries, nextCursor: rows.length > limit ? (entries.at(-1)?.seq ?? null) : null };
    },
    async prune({ retentionMs, limit }) {
      const [row] = await db.write<{ deleted: number }>({
        name: "prune_audit",
        text: "select prune_audit($1, $2, $3) as deleted",
        values: [retentionMs, limit],
      });
      return { more: row?.deleted === limit };
    },
    async endOf({ chain }) {
      const [row] = await db.read<PointRow>({
        name: "end_of_audit_chain",
        text: `select number, hash from (
                 (select number, hash from audit_entry where chain = $1 order by chain desc, number desc limit 1)
                 union all (select number, hash from audit_anchor where chain = $1)) p order by number desc limit 1`,
        values: [chain],
      });
      return row === undefined ? null : toPoint(row);
    },
    async nextChain({ after }) {
      const [row] = await db.read<{ chain: string }>({
        name: "next_audit_chain",
        text: "select chain from audit_entry where chain > $1 order by chain, number limit 1",
        values: [after],
      });
      return row?.chain ?? null;
    },
    async prunedOf({ chain }) {
      const [row] = await db.read<PointRow>({
        name: "pruned_of_audit_chain",
        text: "select number, hash from audit_anchor where chain = $1",
        values: [chain],
      });
      return row === undefined ? null : toPoint(row);
    },
    async readChain({ chain, after, limit }) {
      const rows = await db.read<AuditRow>({
        name: "read_audit_chain",
        text: "select * from audit_entry where chain = $1 and number > $2 order by chain, number limit $3",
        values: [chain, after, limit],
      });
      return rows.map(toEntry);
    },
  };
}

/** Compares and orders rows by all columns of an index, so that the planner cannot use another. */
export function listOfAudit({ tenant, since = 0, keyId, limit, cursor }: ListAuditParams): {
  name: string;
  text: string;
  values: unknown[];
} {
  const [row, key] = keyId === undefined ? ["tenant, at, seq", "$1"] : ["tenant, key_id, at, seq", "$1, $4"];
  const conditions = [
    `(${row}) >= (${key}, $2, 0) and (${row}) <= (${key}, 9e18::bigint, 9e18::bigint)`,
    ...(keyId === undefined ? [] : ["key_id is not null"]),
    ...(cursor === undefined ? [] : [`(at, seq) < (select at, seq from audit_entry where seq = $5)`]),
  ];
  return {
    name: `list_audit_${cursor === undefined}_${keyId === undefined}`,
    text: `select *, $4::text, $5::bigint from audit_entry where ${conditions.join(" and ")}
            order by ${row.replaceAll(/\w+/g, "$& desc")} limit $3`,
    values: [tenant, since, limit + 1, keyId ?? null, cursor ?? null],
  };
}

interface PointRow {
  readonly number: string;
  readonly hash: string;
}

function toPoint({ number, hash }: PointRow): AuditChainPoint {
  return { number: Number(number), hash };
}

interface AuditRow {
  readonly seq: string;
  readonly at: string;
  readonly tenant: string;
  readonly key_id: string | null;
  readonly route: string;
  readonly subject: string | null;
  readonly subject_digest: string | null;
  readonly subject_salt: string | null;
  readonly address: string | null;
  readonly status: number | null;
  readonly count: number;
  readonly chain: string | null;
  readonly number: string | null;
  readonly previous_hash: string | null;
  readonly hash: string | null;
  readonly provenance: string | null;
}

function toEntry(row: AuditRow): AuditEntry {
  const { tenant, route, subject, address, status, count, chain, number, hash, provenance } = row;
  return {
    seq: Number(row.seq),
    at: Number(row.at),
    keyId: row.key_id,
    subjectDigest: row.subject_digest,
    subjectSalt: row.subject_salt,
    ...{ tenant, route, subject, address, status, count, chain, hash, provenance },
    number: number === null ? null : Number(number),
    previousHash: row.previous_hash,
  };
}

export const AUDIT_FUNCTIONS = readSql(new URL("./audit.sql", import.meta.url));
