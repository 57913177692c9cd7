import type { SqliteDatabase } from "./database.ts";

/** A random key that all nodes share: the first call stores it. */
export async function sharedSecret(
  db: SqliteDatabase,
  params: { name: string; fresh: string },
): Promise<string> {
  return db.transactDurably((tx) => {
    tx.prepare("insert into shared_secret (name, value) values (@name, @fresh) on conflict do nothing").run(
      params,
    );
    const row = tx
      .prepare<{ value: string }>("select value from shared_secret where name = @name")
      .get(params) as { value: string };
    return row.value;
  });
}
