import type { RotaEvent } from "../../../src/model/event.ts";
import type { TaskState } from "../../../src/model/task-state.ts";

export interface Replayed {
  readonly event: RotaEvent;
  /** The state the task was in before; undefined: it was not there. */
  readonly before: TaskState | undefined;
  /** The states of all tasks after it. */
  readonly states: ReadonlyMap<string, TaskState>;
}

/** Replays the log, which is in the order in which the storage granted its steps. */
export function* replay(events: readonly RotaEvent[]): Generator<Replayed> {
  const states = new Map<string, TaskState>();
  for (const event of events) {
    if (event.type === "batch.completed") {
      yield { event, before: states.get(event.taskId), states };
      continue;
    }
    const before = states.get(event.taskId);
    states.set(event.taskId, event.state);
    yield { event, before, states };
  }
}

/** The events of each task, in order, without those of batches. */
export function byTask(events: readonly RotaEvent[]): Map<string, RotaEvent[]> {
  const found = new Map<string, RotaEvent[]>();
  for (const event of events) {
    if (event.type === "batch.completed") continue;
    const list = found.get(event.taskId);
    if (list === undefined) found.set(event.taskId, [event]);
    else list.push(event);
  }
  return found;
}
