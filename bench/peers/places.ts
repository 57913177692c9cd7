import type { Setting } from "../job.ts";
import { type NewPlace, postgresPlaces, sqlitePlaces } from "../place.ts";
import { connect } from "../postgres/database.ts";
import type { StorageKind } from "./queue.ts";
import { startRedis } from "./redis/redis-server.ts";

/** Empty storages of a kind. */
export function placesOf(storage: StorageKind, setting: Setting): NewPlace {
  const { folder } = setting;
  switch (storage) {
    case "sqlite":
      return sqlitePlaces(setting);
    case "postgres":
      return vacuumed(postgresPlaces(setting));
    case "redis everysec":
      return () => startRedis({ folder, appendfsync: "everysec" });
    case "redis always":
      return () => startRedis({ folder, appendfsync: "always" });
  }
}

/** What the server would do to a table that has grown, a minute later and in the middle of another measurement. */
function vacuumed(places: NewPlace): NewPlace {
  return async () => {
    const place = await places();
    return {
      ...place,
      settle: async () => {
        const client = await connect(place.url);
        await client.query("vacuum (analyze)");
        await client.end();
        await place.settle();
      },
    };
  };
}
