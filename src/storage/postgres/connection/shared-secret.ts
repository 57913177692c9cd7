import type { PostgresDatabase } from "./database.ts";

/** A random key that all nodes share: the first call stores it. */
export async function sharedSecret(
  db: PostgresDatabase,
  { name, fresh }: { name: string; fresh: string },
): Promise<string> {
  const find = {
    name: "find_shared_secret",
    text: "select value from shared_secret where name = $1",
    values: [name],
  };
  const [known] = await db.read<{ value: string }>(find);
  if (known !== undefined) return known.value;
  await db.read({
    name: "store_shared_secret",
    text: "insert into shared_secret (name, value) values ($1, $2) on conflict do nothing",
    values: [name, fresh],
  });
  // Another node may have been first.
  const [stored] = await db.readDurably<{ value: string }>(find);
  if (stored === undefined) throw new Error(`The secret ${name} was stored, and is not there.`);
  return stored.value;
}
