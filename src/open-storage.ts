import type { Clock } from "./model/clock.ts";
import { RotaError } from "./model/errors.ts";
import type { Storage } from "./storage/storage.ts";

/** Opens the storage a URL names. A driver is loaded only when it is chosen, so that nobody needs the other's library. */
export async function openStorage(url: string, clock: Clock): Promise<Storage> {
  if (url.startsWith("sqlite:")) {
    const { openSqlite } = await import("./storage/sqlite/open.ts");
    return openSqlite({ path: url.slice("sqlite:".length), clock });
  }
  if (/^postgres(?:ql)?:\/\//.test(url)) {
    const { openPostgres } = await import("./storage/postgres/open.ts");
    return openPostgres({ url });
  }
  // The rest of the URL may hold a password.
  const scheme = /^[a-z]+:/i.exec(url)?.[0] ?? url.slice(0, 20);
  throw new RotaError(
    "invalid_field",
    `\`storage\` must be "sqlite:rota.db", "sqlite::memory:" or "postgres://…", not "${scheme}…"`,
    { details: { field: "storage" } },
  );
}
