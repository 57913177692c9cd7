import type { FastifyPluginAsyncZod } from "fastify-type-provider-zod";
import { getRoot } from "../../api/root.ts";
import { VERSION } from "../../version.ts";
import type { RouteParts } from "../route-parts.ts";
import { requiredRole } from "./required-role.ts";

/** The response to `GET /`. */
const LINKS = {
  health: "/health",
  ready: "/ready",
  tasks: "/tasks",
  events: "/tasks/events",
  sessions: "/v1/sessions",
  schedules: "/v1/schedules",
  runs: "/v1/runs",
  agents: "/v1/agents",
  lanes: "/v1/lanes",
  stats: "/scheduler/stats",
  metrics: "/metrics",
  openapi: "/openapi.json",
} as const;

export const rootRoutes: FastifyPluginAsyncZod<RouteParts> = async (app, { hasDashboard, basePath }) => {
  const paths = Object.entries(hasDashboard ? { ...LINKS, dashboard: "/ui/" } : LINKS);
  const links = Object.fromEntries(paths.map(([name, path]) => [name, basePath + path]));
  app.get("/", requiredRole("known", getRoot), async () => ({
    name: "rota" as const,
    version: VERSION,
    links,
  }));
};
