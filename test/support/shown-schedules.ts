import type { Run, ScheduledTask } from "../../src/interface/schedules.ts";

/** A schedule as users see it, made at 0 and due every Monday. */
export function shownSchedule(overrides: Partial<ScheduledTask> = {}): ScheduledTask {
  return {
    id: 17,
    name: null,
    agent_id: "research",
    conversation_id: null,
    session_key: null,
    message: "summarise the week",
    schedule_phrase: "every monday at 09:00",
    schedule_kind: "recurring",
    fire_at: 0,
    recur_json: JSON.stringify({ kind: "weeks", every: 1, on: ["Mon"], at: "09:00", tz: "UTC" }),
    tz: "UTC",
    next_fire_at: 0,
    status: "active",
    enabled: true,
    delete_after_run: false,
    retry: { max_retries: 3, base_delay_ms: 2_000, max_delay_ms: 30_000 },
    overlap: "skip",
    catch_up: "one",
    useful_for: null,
    timeout: null,
    created_at: 0,
    updated_at: 0,
    last_run_at: 0,
    last_run_id: 0,
    run_count: 0,
    last_status: null,
    last_error: null,
    consecutive_failures: 0,
    paused_reason: null,
    ...overrides,
  };
}

/** A run as users see it, which goes since 0. */
export function shownRun(overrides: Partial<Run> = {}): Run {
  return {
    id: 42,
    task_id: 17,
    agent_id: "research",
    queue_task_id: "tsk_1",
    due_at: 0,
    moments: 1,
    status: "running",
    reason: null,
    started_at: 0,
    completed_at: 0,
    request_id: null,
    result_summary: null,
    error_message: null,
    input_tokens: 0,
    output_tokens: 0,
    attempt: 1,
    ...overrides,
  };
}
