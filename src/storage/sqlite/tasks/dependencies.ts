import type { DependencyResultsParams, StoredDependency } from "../../storage.ts";
import type { SqliteDatabase } from "../connection/database.ts";

export async function dependencyResults(
  db: SqliteDatabase,
  { seq, ids, bytesMax }: DependencyResultsParams,
): Promise<StoredDependency[]> {
  return db.read(() => {
    // SQLite knows the length of a text without reading the pages that the text continues on.
    const sizes = db
      .prepare<{ seq: number; id: string; bytes: number }>(
        `select p.seq, p.id, octet_length(p.result) as bytes from dependency d join task p on p.seq = d.parent_seq
          where d.child_seq = ? and p.resting_state = 'done'`,
      )
      .all(seq);
    const byId = new Map(sizes.map((size) => [size.id, size]));
    const read = db.prepare<{ result: string }>("select result from task where seq = ?");
    let left = bytesMax;
    return ids.flatMap((id) => {
      const size = byId.get(id);
      if (size === undefined) return [];
      left = size.bytes <= left ? left - size.bytes : -1;
      const result = left < 0 ? null : (read.get(size.seq)?.result ?? null);
      return { taskId: id, resultBytes: size.bytes, result };
    });
  });
}
