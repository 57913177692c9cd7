import { checkScheduleId } from "../serial-id.ts";
import { parseTaskCursor } from "../task-cursor.ts";
import { TASK_ORDERS, type TaskOrder } from "../task-order.ts";
import type { TaskSelection } from "../task-selection.ts";
import { TASK_STATES, type TaskState } from "../task-state.ts";
import { type Fields, invalidField } from "./field-checks.ts";
import { agentId, choice, name, priority, sessionKey, text, time } from "./kinds.ts";
import { LIMIT_DEFAULT, type Page, pageLimit } from "./page-input.ts";
import { readFields } from "./read-fields.ts";
import { type FilterSchema, type Kind, optional, type ReadOf } from "./schema.ts";
import { notChoice } from "./value-faults.ts";

/** Names of these states in other systems. */
const STATE_ALIASES: Readonly<Record<string, TaskState>> = { pending: "queued", completed: "done" };

export interface ParsedTaskFilter extends TaskSelection, Page {
  readonly order?: TaskOrder;
}

/** `pending` means `queued`, `completed` means `done`. */
export type TaskStateFilter = TaskState | "pending" | "completed";

/** The fields of a filter that select tasks. */
export const SELECTING_FIELDS = {
  agentId: optional(agentId(), { description: "Of this agent." }),
  state: optional(states(), { description: "In this state, or in one of several, separated by commas." }),
  priority: optional(priority(), {
    description: "Of this priority, a number or a name; `critical` is 0 and below.",
  }),
  batchId: optional(name("the id of a batch"), { description: "Of this batch." }),
  sessionKey: optional(sessionKey(), { description: "Of this session." }),
  lane: optional(name("the name of a lane"), { description: "In this lane." }),
  scheduleId: optional(scheduleId(), { description: "Runs of this schedule." }),
  rootTaskId: optional(name("the id of a task"), {
    description: "Submitted within this task, or within a task that was; the task itself is not listed.",
  }),
  q: optional(search(), {
    description: "The id of a task or its beginning, the id of a batch, or the `key` of a task in a batch.",
  }),
  from: optional(time(), {
    description: "Created then or later; with `order=completed`: ended then or later.",
  }),
  to: optional(time(), { description: "Created before that; with `order=completed`: ended before that." }),
} as const;

/** Which tasks to list. */
export const TASK_FILTER = {
  noun: "filter",
  refusesNull: true,
  fields: {
    ...SELECTING_FIELDS,
    order: optional(choice(TASK_ORDERS), {
      description:
        "`newest` or `oldest` first, by acceptance; `completed`: tasks that have ended, the one that ended last first.",
      default: "`newest`",
    }),
    limit: pageLimit(),
    cursor: optional(text(), { description: "`nextCursor` of the page before, which had the same order." }),
  },
} as const satisfies FilterSchema;

/** How much of each task a list returns: a parameter over HTTP. The library has one method for each. */
export const TASK_VIEW = {
  noun: "query",
  refusesNull: true,
  fields: {
    view: optional(choice(["full", "row"]), {
      description: "`full`: whole tasks; `row`: what fits into a line of each, as `TaskRow` describes it.",
      default: "`full`",
    }),
  },
} as const satisfies FilterSchema;

/** Parses the filter of a list of tasks. Throws `invalid_field`. */
export function parseTaskFilter(filter: Fields): ParsedTaskFilter {
  const { limit = LIMIT_DEFAULT, order, cursor: text, ...selection } = readFields(TASK_FILTER, filter);
  const cursor = parseTaskCursor(text, order);
  return {
    ...selectionOf(selection, filter),
    ...(order === undefined ? {} : { order }),
    ...(cursor === undefined ? {} : { cursor }),
    limit,
  };
}

/** The tasks that a filter selects. `given` is the filter as it was sent; `prefix` comes before the names of its fields. */
export function selectionOf(
  read: ReadOf<typeof SELECTING_FIELDS>,
  given: Fields,
  prefix = "",
): TaskSelection {
  const {
    agentId: agent,
    state,
    priority,
    batchId,
    lane,
    sessionKey: session,
    scheduleId,
    rootTaskId,
    q,
    from,
    to,
  } = read;
  if (from !== undefined && to !== undefined && from >= to)
    throw invalidField(
      `${prefix}to`,
      `\`${prefix}to\` must be later than \`${prefix}from\`: a task is listed from \`${prefix}from\` on and before \`${prefix}to\``,
    );
  const fields = {
    agent,
    states: state,
    // The name `critical` matches all critical priorities; a number matches only itself.
    [given["priority"] === "critical" ? "priorityMax" : "priority"]: priority,
    batch: batchId,
    lane,
    session,
    schedule: scheduleId,
    root: rootTaskId,
    search: q,
    from,
    to,
  };
  return Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined));
}

/** A search is for an id or a key: none is longer. */
const SEARCH_MAX = 200;

function search(): Kind<string> {
  const what = "the id of a task or its beginning, the id of a batch, or the `key` of a task in a batch";
  const kind = name(what);
  return {
    ...kind,
    read: (value, field, reading) => {
      const given = kind.read(value, field, reading);
      if (given.trim() !== "" && given.length <= SEARCH_MAX) return given;
      throw invalidField(field, `\`${field}\` must be 1 to ${SEARCH_MAX} characters: ${what}`);
    },
  };
}

function scheduleId(): Kind<number> {
  return { shape: { type: "integer", min: 1 }, read: checkScheduleId };
}

/** Some states: an array of them, or a text with commas. */
function states(): Kind<TaskStateFilter | readonly TaskStateFilter[], TaskState[]> {
  const text = { type: "text" } as const;
  return {
    shape: { type: "union", of: [text, { type: "list", of: text }] },
    read: (value, field) => {
      const words = typeof value === "string" ? value.split(",") : value;
      if (!Array.isArray(words))
        throw invalidField(field, `\`${field}\` must be a state or an array of states`);
      return [...new Set(words.map((word) => parseState(word, field)))];
    },
  };
}

function parseState(value: unknown, field: string): TaskState {
  const word = String(value).trim();
  if ((TASK_STATES as readonly string[]).includes(word)) return word as TaskState;
  const alias = Object.hasOwn(STATE_ALIASES, word) ? STATE_ALIASES[word] : undefined;
  if (alias !== undefined) return alias;
  throw invalidField(
    field,
    `\`${field}\` must be one of ${TASK_STATES.join(", ")}${notChoice(value, TASK_STATES)}`,
  );
}
