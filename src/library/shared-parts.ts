import type { Engine } from "../engine/engine.ts";
import type { EventLog } from "../events/event-log.ts";
import type { NotificationLog } from "../events/notification-log.ts";
import type { EstimateTokens } from "../interface/options.ts";
import type { RequestMetrics } from "../metrics/request-metrics.ts";
import type { WebhookMetrics } from "../metrics/webhook-metrics.ts";
import type { Clock } from "../model/clock.ts";
import type { Log } from "../model/log.ts";
import type { StorageClock } from "../services/storage-clock.ts";
import type { WorkTurns } from "../services/work-turns.ts";
import type { Storage } from "../storage/storage.ts";
import type { Deliverer } from "../webhooks/deliverer.ts";
import type { OneAtATime } from "./one-at-a-time.ts";
import type { AgentBounds } from "./registries/agent-bounds.ts";
import type { AgentCatalogue } from "./registries/agent-catalogue.ts";
import type { AgentTable } from "./registries/agent-table.ts";
import type { LaneCatalogue } from "./registries/lane-catalogue.ts";
import type { LaneTable } from "./registries/lane-table.ts";
import type { SecretBox } from "./registries/secret-box.ts";
import type { TenantCatalogue } from "./registries/tenant-catalogue.ts";
import type { Access } from "./resources/access.ts";
import type { StoredQuota } from "./resources/stored-quota.ts";
import type { CurrentGuard } from "./settings/current-guard.ts";
import type { CurrentSettings } from "./settings/current-settings.ts";
import type { Reloader } from "./settings/reloader.ts";
import type { TaskTokens } from "./task-tokens.ts";

/** The parts of a Rota that its tenants share. `joinRota` makes each once. */
export interface SharedParts {
  readonly current: CurrentSettings;
  readonly storage: Storage;
  readonly storageClock: StorageClock;
  readonly lanes: LaneTable;
  readonly laneCatalogue: LaneCatalogue;
  readonly agents: AgentTable;
  readonly bounds: AgentBounds;
  readonly catalogue: AgentCatalogue;
  readonly tenants: TenantCatalogue;
  readonly quota: StoredQuota;
  readonly guard: CurrentGuard;
  readonly box: SecretBox;
  readonly turns: OneAtATime;
  readonly reloader: Reloader;
  readonly engine: Engine;
  readonly eventLog: EventLog;
  readonly notificationLog: NotificationLog;
  readonly deliverer: Deliverer;
  readonly webhookMetrics: WebhookMetrics;
  readonly requestMetrics: RequestMetrics;
  /** Runs long computations of all tenants in steps, between which other work gets its turn. */
  readonly work: WorkTurns;
  readonly access: Access;
  readonly tokens: TaskTokens;
  readonly estimateTokens?: EstimateTokens | undefined;
  readonly clock: Clock;
  readonly random: () => number;
  readonly log: Log;
}
