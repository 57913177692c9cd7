import type { PostParams } from "../../storage.ts";
import { addEvent } from "../log/add-event.ts";
import { copyJson, type OracleState, signal } from "../state.ts";
import { endTask } from "../tasks/end-task.ts";
import { insertTask } from "../tasks/insert-tasks.ts";
import { preempt } from "../tasks/preempt-tasks.ts";
import { settleMoves } from "../tasks/settle-moves.ts";
import { NO_LIMITS } from "./send-message.ts";

export function postAnswer(state: OracleState, { task: input, result }: PostParams): void {
  if (state.tasks.some(({ id }) => id === input.id)) return;
  const task = insertTask(state, input, NO_LIMITS);
  endTask(state, task, "done", null);
  task.result = copyJson(result ?? null);
  addEvent(state, "task.completed", task, null);
  settleMoves(state);
  preempt(state);
  signal(state, { kind: "events" }, { kind: "work" });
}
