import type { AuditChainPoint, AuditEntry, AuditStorage } from "../../storage.ts";
import { withoutMaker } from "../../without-maker.ts";
import type { SqliteDatabase } from "../connection/database.ts";
import type { Transaction } from "../connection/transaction.ts";

const COLUMNS = `
  seq, at, tenant, key_id as keyId, route, subject, subject_digest as subjectDigest, subject_salt as subjectSalt, address, status, count,
  provenance, chain, number, previous_hash as previousHash, hash`;

/** Null if the caller chose the name of the subject and the tenant is deleted or being deleted. */
function unlessErased(value: string): string {
  return `iif(@subjectDigest is null or ${IS_THERE}, ${value}, null)`;
}

/** Whether the tenant exists and is not being deleted. */
const IS_THERE = "exists (select 1 from tenant where id = @tenant and deleting = 0)";

export function sqliteAudit(db: SqliteDatabase): AuditStorage {
  return {
    async append({ entries }) {
      if (entries.length === 0) return;
      await db.transactDurably((tx) => {
        const add = tx.prepare(
          `insert into audit_entry (at, tenant, key_id, route, subject, subject_digest, subject_salt, address, status, count,
                                    provenance, chain, number, previous_hash, hash)
           values (@at, @tenant, @keyId, @route, ${unlessErased("@subject")}, @subjectDigest, ${unlessErased("@subjectSalt")}, @address, @status, @count,
                   iif(${IS_THERE}, @provenance, @anonymous), @chain, @number, @previousHash, @hash)`,
        );
        for (const entry of entries)
          add.run({ ...entry, anonymous: entry.provenance && withoutMaker(entry.provenance) });
      });
    },
    async list({ tenant, since = 0, keyId, limit, cursor }) {
      const rows = await db.read(() =>
        db
          .prepare<AuditEntry>(
            `select ${COLUMNS} from audit_entry
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
      const deleted = db.transact((tx) => {
        const age = { cutoff: tx.now - retentionMs, latest: tx.now + retentionMs };
        const gone = prune(tx, age, limit);
        forgetAnchors(tx);
        return gone;
      });
      return { more: deleted === limit };
    },
    endOf: ({ chain }) =>
      db.read(
        () =>
          db
            .prepare<AuditChainPoint>(
              "select number, hash from audit_entry where chain = ? order by number desc limit 1",
            )
            .get(chain) ?? anchorOf(db, chain),
      ),
    async nextChain({ after }) {
      const row = db
        .prepare<{ chain: string }>("select chain from audit_entry where chain > ? order by chain limit 1")
        .get(after);
      return row?.chain ?? null;
    },
    prunedOf: ({ chain }) => db.read(() => anchorOf(db, chain)),
    async readChain({ chain, after, limit }) {
      return db
        .prepare<AuditEntry>(
          `select ${COLUMNS} from audit_entry where chain = ? and number > ? order by number limit +?`,
        )
        .all(chain, after, limit);
    },
  };
}

/** If the entry of the cursor is deleted, the older ones are, too. */
const BEFORE_CURSOR = "and (at, seq) < (select at, seq from audit_entry where seq = @cursor)";

/** Entries to delete: older than the cutoff, or from an impossible future. */
interface Age {
  readonly cutoff: number;
  readonly latest: number;
}

function prune(tx: Transaction, age: Age, limit: number): number {
  const old = tx
    .prepare<{ seq: number; chain: string | null }>(
      `select seq, chain from (select seq, chain from audit_entry where at < @cutoff order by at, seq limit +@limit)
       union all
       select seq, chain from (select seq, chain from audit_entry where at > @latest order by at desc limit +@limit)
       limit +@limit`,
    )
    .all({ ...age, limit });
  const unchained = old.filter(({ chain }) => chain === null);
  const remove = tx.prepare("delete from audit_entry where seq = ?");
  for (const { seq } of unchained) remove.run(seq);
  let deleted = unchained.length;
  for (const chain of new Set(old.flatMap((entry) => entry.chain ?? []))) {
    deleted += pruneChain(tx, chain, { ...age, limit: limit - deleted });
  }
  return deleted;
}

/** Deletes the oldest entries of a chain, up to the first that stays, so that the rest has no gap. */
function pruneChain(
  tx: Transaction,
  chain: string,
  { cutoff, latest, limit }: Age & { limit: number },
): number {
  const oldest = tx
    .prepare<AuditChainPoint & { at: number }>(
      "select number, hash, at from audit_entry where chain = ? order by number limit +?",
    )
    .all(chain, limit);
  const kept = oldest.findIndex(({ at }) => at >= cutoff && at <= latest);
  const gone = kept === -1 ? oldest : oldest.slice(0, kept);
  const last = gone.at(-1);
  if (last === undefined) return 0;
  tx.prepare("delete from audit_entry where chain = ? and number <= ?").run(chain, last.number);
  tx.prepare("insert or replace into audit_anchor (chain, number, hash) values (?, ?, ?)").run(
    chain,
    last.number,
    last.hash,
  );
  return gone.length;
}

/** Deletes anchors of chains that have no entries and whose node no longer exists. */
function forgetAnchors(tx: Transaction): void {
  tx.prepare(
    `delete from audit_anchor
      where not exists (select 1 from audit_entry e where e.chain = audit_anchor.chain)
        and not exists (select 1 from node n where n.id = audit_anchor.chain)`,
  ).run();
}

function anchorOf(db: SqliteDatabase, chain: string): AuditChainPoint | null {
  const anchor = db.prepare<AuditChainPoint>("select number, hash from audit_anchor where chain = ?");
  return anchor.get(chain) ?? null;
}
