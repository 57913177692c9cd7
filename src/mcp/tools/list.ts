import type { AgentInfo } from "../../interface/agents.ts";
import type { Run, ScheduledTask } from "../../interface/schedules.ts";
import type { Session } from "../../interface/sessions.ts";
import { invalidField } from "../../model/input/field-checks.ts";
import { choice, sessionKey, text as textKind } from "../../model/input/kinds.ts";
import { optional, required } from "../../model/input/schema.ts";
import { SELECTING_FIELDS } from "../../model/input/task-filter-input.ts";
import { RUN_STATUSES, type RunStatus } from "../../model/run.ts";
import { SCHEDULE_STATUSES, type ScheduleStatus } from "../../model/schedule.ts";
import type { TaskRow } from "../../model/task.ts";
import type { TaskState } from "../../model/task-state.ts";
import { text } from "../answer.ts";
import type { McpRota } from "../backend.ts";
import { durationText } from "../task-answer.ts";
import { defineTool } from "../tool.ts";
import { nameText, quoteField, quoteKey } from "../untrusted.ts";

/** As many rows as fit into about 2 KiB. */
const ROWS = 20;

/** How much of the key of a session a row has. */
const KEY_LENGTH_MAX = 64;

const WHAT = ["tasks", "schedules", "runs", "sessions", "agents"] as const;
type What = (typeof WHAT)[number];

/** Which filters each list has. */
const FILTERS: Readonly<Record<What, readonly string[]>> = {
  tasks: ["state", "agent", "session"],
  schedules: ["state", "agent"],
  runs: ["state"],
  sessions: [],
  agents: [],
};

interface Filter {
  readonly state?: string;
  readonly agent?: string;
  readonly session?: string;
  readonly cursor?: string;
}

interface Listed {
  readonly rows: readonly string[];
  readonly next: string | null;
}

export const list = defineTool({
  name: "list",
  description: `The newest ${ROWS}, a line each`,
  access: "read",
  annotations: { readOnlyHint: true },
  fields: {
    what: required(choice(WHAT)),
    state: optional(textKind(), { description: "Of tasks, schedules, runs" }),
    agent: optional(SELECTING_FIELDS.agentId, { description: "Of tasks, schedules" }),
    session: optional(sessionKey(), { description: "Of tasks" }),
    cursor: optional(textKind(), { description: "For the next page" }),
  },
  async run({ what, ...filter }, { rota }) {
    for (const name of Object.keys(filter)) {
      if (name === "cursor" || FILTERS[what].includes(name)) continue;
      const known = FILTERS[what].map((each) => `\`${each}\``).join(", ") || "no filter";
      throw invalidField(name, `\`${name}\` does not filter ${what}: they take ${known}`);
    }
    const { rows, next } = await LISTS[what](rota, filter);
    const more = next === null ? [] : [`More: cursor ${JSON.stringify(next)}`];
    return text([...(rows.length === 0 ? [`No ${what}.`] : rows), ...more].join("\n"));
  },
});

const LISTS: Readonly<Record<What, (rota: McpRota, filter: Filter) => Promise<Listed>>> = {
  async tasks({ tasks }, { state, agent, session, cursor }) {
    const { tasks: rows, nextCursor } = await tasks.listRows({
      limit: ROWS,
      ...(state === undefined ? {} : { state: state as TaskState }),
      ...(agent === undefined ? {} : { agentId: agent }),
      ...(session === undefined ? {} : { sessionKey: session }),
      ...(cursor === undefined ? {} : { cursor }),
    });
    return { rows: rows.map(taskRow), next: nextCursor };
  },
  async schedules({ schedules }, { state, agent, cursor }) {
    const page = await schedules.list({
      limit: ROWS,
      ...(state === undefined ? {} : { status: checked<ScheduleStatus>(state, SCHEDULE_STATUSES) }),
      ...(agent === undefined ? {} : { agent }),
      ...(cursor === undefined ? {} : { cursor }),
    });
    return { rows: page.schedules.map(scheduleRow), next: page.next_cursor };
  },
  async runs({ runs }, { state, cursor }) {
    const page = await runs.list({
      limit: ROWS,
      ...(state === undefined ? {} : { status: checked<RunStatus>(state, RUN_STATUSES) }),
      ...(cursor === undefined ? {} : { cursor }),
    });
    return { rows: page.runs.map(runRow), next: page.next_cursor };
  },
  async sessions({ sessions }, { cursor }) {
    const page = await sessions.list({ limit: ROWS, ...(cursor === undefined ? {} : { cursor }) });
    return { rows: page.sessions.map(sessionRow), next: page.nextCursor };
  },
  async agents({ agents }, { cursor }) {
    const page = await agents.list({ limit: ROWS, ...(cursor === undefined ? {} : { cursor }) });
    return { rows: page.agents.map(agentRow), next: page.nextCursor };
  },
};

function checked<State extends string>(state: string, states: readonly State[]): State {
  return choice(states).read(state, "state", { faults: [], limits: {} });
}

function taskRow({ taskId, state, startedAt, completedAt, agentId, title, error }: TaskRow): string {
  const ran = startedAt !== undefined && completedAt !== undefined;
  const took = ran ? ` ${durationText(Math.max(Date.parse(completedAt) - Date.parse(startedAt), 0))}` : "";
  const words = error === undefined ? quoteField(title ?? "…", 40) : `✗ ${quoteField(error, 40)}`;
  return `${taskId} ${state}${took} ${nameText(agentId)} ${words}`;
}

function scheduleRow(schedule: ScheduledTask): string {
  const { id, status, schedule_phrase: phrase, agent_id: agent, next_fire_at: next } = schedule;
  const due = next === 0 ? "" : ` next ${timeText(next)}`;
  return `#${id} ${status} ${quoteField(phrase, 40)}${due} ${nameText(agent)} ${quoteField(workOf(schedule), 40)}`;
}

export function workOf({ message, instruction, payload }: ScheduledTask): string {
  return message ?? instruction ?? JSON.stringify(payload) ?? "";
}

function runRow({ id, task_id: schedule, status, due_at: due, queue_task_id: task, reason }: Run): string {
  return `run ${id} of #${schedule} ${status} due ${timeText(due)} ${task ?? ""}${reason === null ? "" : ` ${quoteField(reason, 40)}`}`;
}

function sessionRow({ key, agentId, mode, running, queued }: Session): string {
  return `${keyText(key)} ${nameText(agentId)} ${mode}: ${running} running, ${queued} waiting`;
}

/** Long keys are cut: a page of them would fill the context of a model. */
function keyText(key: string): string {
  return key.length > KEY_LENGTH_MAX ? quoteField(key, KEY_LENGTH_MAX) : quoteKey(key);
}

function agentRow({ id, source, lane, maxInflight, writs }: AgentInfo): string {
  const limits = maxInflight === undefined ? "" : `, at most ${maxInflight} at once`;
  return `${nameText(id)} (${source}${lane === undefined ? "" : `, lane ${nameText(lane)}`}${limits}${writs ? ", may schedule" : ""})`;
}

/** A time in seconds since 1970. */
export function timeText(seconds: number): string {
  return new Date(seconds * 1_000).toISOString().replace(/\.\d+/, "");
}
