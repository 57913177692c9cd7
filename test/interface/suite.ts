import { describe } from "vitest";
import { describeAgents } from "./agents.ts";
import { describeBatches } from "./batches.ts";
import { describeBulks } from "./bulks.ts";
import { describeConcurrencyKeys } from "./concurrency-keys.ts";
import { describeDryRuns } from "./dry-runs.ts";
import { describeEvents } from "./events.ts";
import { describeKeys } from "./keys.ts";
import { describeLanes } from "./lanes.ts";
import { describeNotifications } from "./notifications.ts";
import type { Open } from "./opened.ts";
import { describePreemption } from "./pre-emption.ts";
import { describeRuns } from "./runs.ts";
import { describeScheduleLimits } from "./schedule-limits.ts";
import { describeSchedulePreview } from "./schedule-preview.ts";
import { describeSchedules } from "./schedules.ts";
import { describeSecrets } from "./secrets.ts";
import { describeSessionModes } from "./session-modes.ts";
import { describeSessionStops } from "./session-stops.ts";
import { describeSessions } from "./sessions.ts";
import { describeStatus } from "./status.ts";
import { describeTasks } from "./tasks.ts";
import { describeTenants } from "./tenants.ts";
import { describeWebhooks } from "./webhooks.ts";
import { describeWrits } from "./writs.ts";

/** The promises of every way to use Rota. The library and the client run it, so that neither does less, or differently. */
export function describeRotaApi(name: string, open: Open): void {
  describe(name, () => {
    describeTasks(open);
    describeDryRuns(open);
    describeBatches(open);
    describeBulks(open);
    describePreemption(open);
    describeConcurrencyKeys(open);
    describeSessions(open);
    describeSessionModes(open);
    describeSessionStops(open);
    describeSchedulePreview(open);
    describeSchedules(open);
    describeScheduleLimits(open);
    describeRuns(open);
    describeWrits(open);
    describeNotifications(open);
    describeEvents(open);
    describeLanes(open);
    describeAgents(open);
    describeWebhooks(open);
    describeTenants(open);
    describeSecrets(open);
    describeKeys(open);
    describeStatus(open);
  });
}
