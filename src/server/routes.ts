import type { FastifyInstance } from "fastify";
import type { RouteParts } from "./route-parts.ts";
import { agentRoutes } from "./routes/agents.ts";
import { auditRoutes } from "./routes/audit.ts";
import { bulkRoutes } from "./routes/bulks.ts";
import { configRoutes } from "./routes/config.ts";
import { doctorRoutes } from "./routes/doctor.ts";
import { eventLogRoutes } from "./routes/event-log.ts";
import { eventRoutes } from "./routes/events.ts";
import { healthRoutes } from "./routes/health.ts";
import { keyRoutes } from "./routes/keys.ts";
import { laneRoutes } from "./routes/lanes.ts";
import { mcpRoutes } from "./routes/mcp.ts";
import { meRoutes } from "./routes/me.ts";
import { metricsRoutes } from "./routes/metrics.ts";
import { nodeRoutes } from "./routes/nodes.ts";
import { notificationRoutes } from "./routes/notifications.ts";
import { openApiRoutes } from "./routes/openapi.ts";
import { rootRoutes } from "./routes/root.ts";
import { runRoutes } from "./routes/runs.ts";
import { schedulerRoutes } from "./routes/scheduler.ts";
import { scheduleRoutes } from "./routes/schedules.ts";
import { sessionRoutes } from "./routes/sessions.ts";
import { statsRoutes } from "./routes/stats.ts";
import { taskRoutes } from "./routes/tasks.ts";
import { tenantRoutes } from "./routes/tenants.ts";
import { waitingRoutes } from "./routes/waiting.ts";
import { webhookRoutes } from "./routes/webhooks.ts";
import { workerRoutes } from "./routes/workers.ts";
import { writRoutes } from "./routes/writs.ts";

/** Routes that other systems have too, under the same paths as there. */
const EVERYWHERE = [healthRoutes, metricsRoutes, openApiRoutes, schedulerRoutes, taskRoutes, eventRoutes];
/** Rota's own routes, below `/v1`. */
const VERSIONED = [
  meRoutes,
  bulkRoutes,
  sessionRoutes,
  scheduleRoutes,
  runRoutes,
  statsRoutes,
  writRoutes,
  notificationRoutes,
  eventLogRoutes,
  waitingRoutes,
  laneRoutes,
  agentRoutes,
  workerRoutes,
  webhookRoutes,
  nodeRoutes,
  tenantRoutes,
  keyRoutes,
  auditRoutes,
  configRoutes,
  doctorRoutes,
];

export function registerRoutes(app: FastifyInstance, parts: RouteParts): void {
  app.register(rootRoutes, parts);
  app.register(mcpRoutes, parts);
  for (const routes of EVERYWHERE) app.register(routes, parts);
  for (const routes of [...EVERYWHERE, ...VERSIONED]) app.register(routes, { prefix: "/v1", ...parts });
}
