/** The client, for programs that use a Rota server over HTTP, in Node or in a browser. */

export { HttpError, PermanentError } from "../executors/errors.ts";
export type {
  Executor,
  ExecutorContext,
  SteeredMessage,
  TaskSession,
  Usage,
} from "../executors/executor.ts";
export type {
  AgentChanges,
  AgentInfo,
  AgentInput,
  AgentList,
  AgentPageInput,
  Agents,
} from "../interface/agents.ts";
export type { Audit, AuditFilter, AuditPage, AuditRecord } from "../interface/audit.ts";
export type {
  Bulk,
  BulkFilter,
  BulkInput,
  BulkPreview,
  BulkSample,
  Bulks,
  StartedBulk,
} from "../interface/bulks.ts";
export type { DoctorCheck, DoctorOptions, DoctorProgress, DoctorReport } from "../interface/doctor.ts";
export type { CreatedKey, KeyInfo, KeyInput, KeyList, KeyOwner, Keys } from "../interface/keys.ts";
export type { LaneInfo, LaneInput, LaneList, Lanes } from "../interface/lanes.ts";
export type { NodeInfo, NodeLaneInfo, NodeList, NodeState, Nodes } from "../interface/nodes.ts";
export type {
  Notification,
  Notifications,
  NotificationsOptions,
  ScheduleNotification,
  WorkerNotification,
} from "../interface/notifications.ts";
export type {
  EventPage,
  EventPageFilter,
  Events,
  EventsOptions,
  Health,
  RotaApi,
  RotaState,
} from "../interface/rota.ts";
export type {
  CreatedSchedule,
  NewScheduleInput,
  Run,
  RunAnswer,
  RunFilter,
  RunMode,
  RunPage,
  Runs,
  ScheduleChanges,
  ScheduleDryRun,
  ScheduledTask,
  ScheduleFilter,
  ScheduleList,
  SchedulePreviewInput,
  ScheduleRetry,
  Schedules,
  SchedulesStatus,
  UpcomingFilter,
  UpcomingMoment,
  UpcomingMoments,
} from "../interface/schedules.ts";
export type {
  SentMessage,
  Session,
  SessionAnswer,
  SessionChanges,
  SessionMessage,
  SessionPage,
  SessionPageInput,
  SessionReply,
  Sessions,
  StoppedTasks,
} from "../interface/sessions.ts";
export type { TaskLog, TaskLogFilter, TaskLogLevel, TaskLogLine } from "../interface/task-logs.ts";
export type {
  CancelledTask,
  PlannedTask,
  TaskCounts,
  TaskDryRun,
  TaskFilter,
  TaskPage,
  TaskRetryOptions,
  TaskRowPage,
  TaskStateFilter,
  Tasks,
  WaitOptions,
} from "../interface/tasks.ts";
export type {
  RotatedWebhookSecret,
  Tenant,
  TenantChanges,
  TenantInput,
  TenantLimits,
  TenantLimitsInput,
  TenantList,
  Tenants,
} from "../interface/tenants.ts";
export type { WaitingCode, WaitingReason, WaitingReasons } from "../interface/waiting.ts";
export type { DeliveryFilter, DeliveryPage, Webhooks } from "../interface/webhooks.ts";
export type {
  DeletedWorker,
  WorkerInfo,
  WorkerList,
  WorkerPageInput,
  Workers,
} from "../interface/workers.ts";
export type { WritAnswer, WritInput, Writs } from "../interface/writs.ts";
export type {
  Batch,
  BatchCompleted,
  BatchTask,
  BatchTaskInput,
  SubmittedBatch,
  SubmittedBatchTask,
} from "../model/batch.ts";
export type { Delivery, DeliveryEvent, DeliveryStatus } from "../model/delivery.ts";
export { type ErrorCode, RotaError } from "../model/errors.ts";
export type { EventType, RotaEvent } from "../model/event.ts";
export type { Explanation, Reason, ReasonCode } from "../model/explanation.ts";
export type { BatchInput } from "../model/input/batch-input.ts";
export { inputOfTask, workOfTask } from "../model/input/input-of-task.ts";
export type {
  AtSchedule,
  CronSchedule,
  EverySchedule,
  ScheduleInput,
} from "../model/input/schedule-schema.ts";
export type { StatsSeriesQuery } from "../model/input/stats-series-input.ts";
export type {
  ActionInput,
  CustomInput,
  InstructionInput,
  MessageInput,
  SubmitInput,
  SubmittedTask,
} from "../model/input/submit-input.ts";
export type { Log } from "../model/log.ts";
export type { Feature, Me } from "../model/me.ts";
export type { PriorityName } from "../model/priority.ts";
export type { RetryPolicy } from "../model/retry-policy.ts";
export type { Role } from "../model/role.ts";
export type { RunStatus } from "../model/run.ts";
export type { CatchUp, Overlap, ScheduleKind, SchedulePreview, ScheduleStatus } from "../model/schedule.ts";
export type { AgentMetrics, SchedulerMetrics, SchedulerStats } from "../model/scheduler-stats.ts";
export type { DropPolicy, SessionMode } from "../model/session.ts";
export type {
  Series,
  SeriesMetric,
  SeriesSplit,
  SeriesStep,
  SpreadPoint,
  StatsSeries,
} from "../model/stats-series.ts";
export type { Attempt, AttemptOutcome, Task, TaskKind, TaskRow, TaskUsage } from "../model/task.ts";
export type { TaskOrder } from "../model/task-order.ts";
export type { TaskState, TerminalState } from "../model/task-state.ts";
export type { CallOptions } from "./call-options.ts";
export { ConnectionError } from "./connection-error.ts";
export { RotaClient } from "./rota-client.ts";
export type { RetryOptions, RotaClientOptions } from "./settings.ts";
export { RotaWorker } from "./worker/rota-worker.ts";
export type { RotaWorkerOptions } from "./worker/worker-options.ts";
