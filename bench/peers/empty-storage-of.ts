import { type NewStorage, postgresStorage, sqliteStorage } from "../empty-storage.ts";
import type { Setting } from "../job.ts";
import { connect } from "../postgres/database.ts";
import type { StorageKind } from "./queue.ts";
import { startRedis } from "./redis/redis-server.ts";

/** Empty storages of a kind. */
export function emptyStorageOf(storage: StorageKind, setting: Setting): NewStorage {
  const { folder } = setting;
  switch (storage) {
    case "sqlite":
      return sqliteStorage(setting);
    case "postgres":
      return vacuumed(postgresStorage(setting));
    case "redis everysec":
      return () => startRedis({ folder, appendfsync: "everysec" });
    case "redis always":
      return () => startRedis({ folder, appendfsync: "always" });
  }
}

/** What the server would do to a table that has grown, a minute later and in the middle of another measurement. */
function vacuumed(newStorage: NewStorage): NewStorage {
  return async () => {
    const target = await newStorage();
    return {
      ...target,
      settle: async () => {
        const client = await connect(target.url);
        await client.query("vacuum (analyze)");
        await client.end();
        await target.settle();
      },
    };
  };
}
