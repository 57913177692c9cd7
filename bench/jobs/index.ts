import type { Job } from "../job.ts";
import { peersJob } from "../peers/peers-job.ts";
import { dueOnPostgres, dueOnSqlite } from "./due-schedules.ts";
import { growthOnPostgres, growthOnSqlite } from "./growth.ts";
import { httpJob } from "./http.ts";
import { idleOnPostgres, idleOnSqlite } from "./idle.ts";
import { idleSchedulesOnPostgres, idleSchedulesOnSqlite } from "./idle-schedules.ts";
import { latencyInMemory, latencyOnPostgres, latencyOnSqlite } from "./latency.ts";
import { listsOnPostgres, listsOnSqlite } from "./lists.ts";
import { neighboursOnPostgres, neighboursOnSqlite } from "./neighbours.ts";
import { nodesJob } from "./nodes.ts";
import { postgresJob } from "./postgres.ts";
import { realisticJob } from "./realistic.ts";
import { schedulesJob } from "./schedules.ts";
import { sessionsOnPostgres, sessionsOnSqlite } from "./sessions.ts";
import { sqliteJob } from "./sqlite.ts";
import { streamsJob } from "./streams.ts";
import { workersOnPostgres, workersOnSqlite } from "./workers.ts";

export const PARTS = [
  "sqlite",
  "postgres",
  "nodes",
  "realistic",
  "http",
  "latency",
  "idle",
  "growth",
  "lists",
  "sessions",
  "schedules",
  "workers",
  "neighbours",
  "peers",
] as const;
export type Part = (typeof PARTS)[number];

const SLOW_PARTS: readonly Part[] = ["peers", "neighbours", "lists"];

/** What is measured when no part is named: the peers take an hour and have to be installed, the others take minutes. */
export const USUAL_PARTS: readonly Part[] = PARTS.filter((part) => !SLOW_PARTS.includes(part));

export interface JobEntry {
  readonly part: Part;
  readonly name: string;
  readonly needsPostgres: boolean;
  readonly run: Job;
}

/** Everything that can be measured, in the order of the report. */
export const JOBS: readonly JobEntry[] = [
  { part: "sqlite", name: "sqlite", needsPostgres: false, run: sqliteJob },
  { part: "postgres", name: "postgres", needsPostgres: true, run: postgresJob },
  { part: "nodes", name: "nodes on PostgreSQL", needsPostgres: true, run: nodesJob },
  { part: "realistic", name: "realistic load on PostgreSQL", needsPostgres: true, run: realisticJob },
  { part: "http", name: "http on SQLite", needsPostgres: false, run: httpJob },
  { part: "latency", name: "latency in memory", needsPostgres: false, run: latencyInMemory },
  { part: "latency", name: "latency on SQLite", needsPostgres: false, run: latencyOnSqlite },
  { part: "latency", name: "latency on PostgreSQL", needsPostgres: true, run: latencyOnPostgres },
  { part: "idle", name: "idle on SQLite", needsPostgres: false, run: idleOnSqlite },
  { part: "idle", name: "idle on PostgreSQL", needsPostgres: true, run: idleOnPostgres },
  { part: "growth", name: "growth on SQLite", needsPostgres: false, run: growthOnSqlite },
  { part: "growth", name: "growth on PostgreSQL", needsPostgres: true, run: growthOnPostgres },
  { part: "lists", name: "lists on SQLite", needsPostgres: false, run: listsOnSqlite },
  { part: "lists", name: "lists on PostgreSQL", needsPostgres: true, run: listsOnPostgres },
  { part: "schedules", name: "schedules", needsPostgres: false, run: schedulesJob },
  { part: "schedules", name: "due schedules on SQLite", needsPostgres: false, run: dueOnSqlite },
  { part: "schedules", name: "due schedules on PostgreSQL", needsPostgres: true, run: dueOnPostgres },
  { part: "schedules", name: "idle schedules on SQLite", needsPostgres: false, run: idleSchedulesOnSqlite },
  {
    part: "schedules",
    name: "idle schedules on PostgreSQL",
    needsPostgres: true,
    run: idleSchedulesOnPostgres,
  },
  { part: "schedules", name: "streams", needsPostgres: false, run: streamsJob },
  { part: "sessions", name: "sessions on SQLite", needsPostgres: false, run: sessionsOnSqlite },
  { part: "sessions", name: "sessions on PostgreSQL", needsPostgres: true, run: sessionsOnPostgres },
  { part: "workers", name: "workers on SQLite", needsPostgres: false, run: workersOnSqlite },
  { part: "workers", name: "workers on PostgreSQL", needsPostgres: true, run: workersOnPostgres },
  { part: "neighbours", name: "neighbours on SQLite", needsPostgres: false, run: neighboursOnSqlite },
  { part: "neighbours", name: "neighbours on PostgreSQL", needsPostgres: true, run: neighboursOnPostgres },
  { part: "peers", name: "peers", needsPostgres: true, run: peersJob },
];
