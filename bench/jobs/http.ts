import { sqliteStorage } from "../empty-storage.ts";
import { type Figure, figure, shareOf } from "../figure.ts";
import { measurePosts, type Posts } from "../http/measure-posts.ts";
import type { ServerKind } from "../http/server-program.ts";
import type { Setting } from "../job.ts";

const CONNECTIONS = 50;

/** `POST /tasks` one by one, beside a bare Fastify route that checks the same and stores nothing. */
export async function httpJob({ folder, sizes, turns }: Setting): Promise<Figure[]> {
  const runs: Record<ServerKind, Posts[]> = { bare: [], accepting: [], running: [] };
  for (let turn = 1; turn <= turns; turn++) {
    for (const server of ["bare", "accepting", "running"] as const) {
      const params = { server, connections: CONNECTIONS, seconds: sizes.httpSec };
      const posts = await measurePosts(sqliteStorage({ folder }), params);
      runs[server].push(posts);
      console.error(`  turn ${turn}: ${server} ${Math.round(posts.perSecond).toLocaleString("en")}`);
    }
  }
  const rates = (server: ServerKind) => runs[server].map(({ perSecond }) => perSecond);
  const p99 = (server: ServerKind) => runs[server].map(({ p99Ms }) => p99Ms);
  return [
    figure("a bare route, 50 connections", "tasks/s", rates("bare")),
    figure("a bare route, p99", "ms", p99("bare")),
    figure("POST /tasks, 50 connections", "tasks/s", rates("accepting")),
    figure("POST /tasks, p99", "ms", p99("accepting")),
    shareOf("POST /tasks / bare", {
      of: rates("accepting"),
      against: rates("bare"),
      goal: { atLeast: 0.7 },
    }),
    figure("POST /tasks, 50 connections, while they are run", "tasks/s", rates("running")),
    figure("POST /tasks, while they are run, p99", "ms", p99("running")),
    shareOf("POST /tasks while they are run / bare", { of: rates("running"), against: rates("bare") }),
  ];
}
