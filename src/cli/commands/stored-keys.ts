import type { Keys } from "../../interface/keys.ts";
import { parseStorageUrl } from "../../model/storage-url.ts";
import { openAccess } from "../../rota.ts";
import { configSource } from "../flags/config-flags.ts";
import { UsageError } from "../terminal/usage-error.ts";

/** Keys, directly in the storage: the first key is created this way, before a server may listen. The audit log records it. */
export async function withStoredKeys<T>(
  flags: { readonly storage: string | undefined; readonly config: string | undefined },
  use: (keys: Keys) => Promise<T>,
): Promise<T> {
  const { config } = configSource({
    ...(flags.storage === undefined ? {} : { storage: flags.storage }),
    ...(flags.config === undefined ? {} : { config: flags.config }),
  }).load();
  const url = parseStorageUrl(config.storage);
  if (url?.driver === "sqlite" && url.path === ":memory:") {
    throw new UsageError(
      "a storage in memory keeps no key: name another with --storage, like sqlite:rota.db",
    );
  }
  const { keys, audit, close } = await openAccess(config.storage);
  try {
    return await use({
      ...keys,
      async create(input) {
        const created = await keys.create(input);
        await audit.write({ ...tenantOf(input), route: "rota keys create", subject: created.id });
        return created;
      },
      async delete(id, owner) {
        const deleted = await keys.delete(id, owner);
        await audit.write({ ...tenantOf(owner), route: "rota keys delete", subject: id });
        return deleted;
      },
    });
  } finally {
    await close();
  }
}

function tenantOf({ tenantId }: { readonly tenantId?: string } = {}): { readonly tenantId?: string } {
  return tenantId === undefined ? {} : { tenantId };
}
