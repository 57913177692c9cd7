import type { TaskActions } from "../../executors/executor.ts";
import { Connection } from "../connection.ts";
import { HttpSchedules } from "../schedules.ts";
import { HttpSessions } from "../sessions.ts";
import type { ClientSettings } from "../settings.ts";
import { HttpTasks } from "../tasks.ts";

/**
 * What a handler makes within its task. The requests carry the token of the attempt and not the key of the worker, which may only
 * run tasks.
 */
export function attemptActions(settings: ClientSettings, taskToken: string): TaskActions {
  const headers = { "x-rota-via": "worker", "x-rota-task-token": taskToken };
  const connection = new Connection({ ...settings, headers });
  const tasks = new HttpTasks(connection);
  const sessions = new HttpSessions(connection, tasks);
  const schedules = new HttpSchedules(connection);
  return {
    submit: (input) => tasks.submit(input),
    schedule: (input) => schedules.create(input),
    say: (sessionKey, input) => sessions.send(sessionKey, input),
  };
}
