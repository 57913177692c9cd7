import type { System } from "../queue.ts";
import { bullmqAlways, bullmqEverySecond } from "./bullmq.ts";
import { graphileWorker } from "./graphile-worker.ts";
import { pgBoss } from "./pg-boss.ts";
import { plainjobFull, plainjobNormal } from "./plainjob.ts";
import { rotaOnPostgres, rotaOnSqlite } from "./rota.ts";

/** Rota and what is on the same class of storage: one server to run, or none, and a database of one's own. */
export interface Class {
  readonly name: string;
  readonly rota: System;
  readonly peers: readonly System[];
}

export const CLASSES: readonly Class[] = [
  {
    name: "On a file, or in Redis",
    rota: rotaOnSqlite,
    peers: [plainjobFull, plainjobNormal, bullmqAlways, bullmqEverySecond],
  },
  { name: "On PostgreSQL", rota: rotaOnPostgres, peers: [pgBoss, graphileWorker] },
];

export const SYSTEMS: readonly System[] = CLASSES.flatMap(({ rota, peers }) => [rota, ...peers]);

export function findSystem(name: string): System {
  const system = SYSTEMS.find((each) => each.name === name);
  if (system === undefined) throw new Error(`there is no system "${name}"`);
  return system;
}
