export type {
  EventsOptions,
  Rota,
  RotaState,
  SubmittedManyTask,
  TaskFilter,
  TaskPage,
  TaskStateFilter,
  Tasks,
} from "./rota-interface.ts";
export type {
  AgentOptions,
  LaneOptions,
  RotaOptions,
  SchedulerOptions,
  TimeoutOptions,
} from "./rota-options.ts";
