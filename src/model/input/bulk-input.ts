import { BULK_ACTIONS, BULK_IDS_MAX, BULK_LIMIT_MAX, BULK_TASK_STATES, type BulkAction } from "../bulk.ts";
import { looksLikeTaskId } from "../task-id.ts";
import type { TaskSelection } from "../task-selection.ts";
import type { TaskState } from "../task-state.ts";
import { type Fields, invalidField, isObject, quoted, withoutNulls } from "./field-checks.ts";
import { boolean, choice, number, object } from "./kinds.ts";
import { readFields } from "./read-fields.ts";
import { type InputOf, type Kind, optional, type ReadOf, required, type Schema } from "./schema.ts";
import { SELECTING_FIELDS, selectionOf } from "./task-filter-input.ts";

/** A filter with every field set is shorter than this. */
const FILTER_LENGTH_MAX = 4_000;

/** One action on many tasks. */
export const BULK = {
  name: "BulkRequest",
  noun: "request",
  description: "One action on many tasks.",
  fields: {
    action: required(choice(BULK_ACTIONS), {
      description: "What to do with each task. `delete` acts on tasks that have ended.",
      missing: `is missing: it is one of ${BULK_ACTIONS.join(", ")}`,
    }),
    ids: optional(taskIds(), { description: "1 to 1000 task ids, instead of `filter`." }),
    filter: optional(selection(), {
      description:
        "Selects tasks by the same fields as the list of tasks. States that the action cannot act on are skipped. An empty filter is refused.",
    }),
    limit: optional(number({ min: 1, max: BULK_LIMIT_MAX }), {
      description: "The most tasks to act on.",
      default: "100 000",
    }),
  },
  examples: [{ action: "cancel", filter: { state: "queued", agentId: "research" } }],
} as const satisfies Schema;

/** The same over HTTP, where a preview is a field. */
export const BULK_REQUEST = {
  ...BULK,
  fields: {
    ...BULK.fields,
    dryRun: optional(boolean(), {
      description: "True: only count the tasks that match, and change nothing.",
    }),
  },
  examples: [{ ...BULK.examples[0], dryRun: true }],
} as const satisfies Schema;

export interface ParsedSelection extends TaskSelection {
  readonly states: readonly TaskState[];
}

export interface ParsedBulk {
  readonly action: BulkAction;
  readonly limit: number;
  /** Null: `selection` selects the tasks. No id is there twice. */
  readonly ids: readonly string[] | null;
  readonly selection: ParsedSelection | null;
  /** The filter as the caller sent it; null: the caller sent `ids`. */
  readonly filter: Fields | null;
}

/** Parses the body of a bulk action. Throws `invalid_field`. */
export function parseBulkInput(input: unknown): ParsedBulk {
  if (!isObject(input)) throw invalidField("action", "send an object with `action`, and `ids` or `filter`");
  const { action, ids, filter, limit = BULK_LIMIT_MAX } = readFields(BULK, input);
  if (ids === undefined && filter === undefined)
    throw invalidField(
      "filter",
      '`filter` is missing: select tasks, as in `{"state": "queued"}`, or name them in `ids`',
    );
  if (ids !== undefined && filter !== undefined)
    throw invalidField("filter", "`filter` and `ids` exclude each other: leave one of them out");
  if (filter === undefined) return { action, limit, ids: ids ?? [], selection: null, filter: null };
  return { action, limit, ids: null, ...parseFilter(action, filter, input["filter"] as Fields) };
}

function taskIds(): Kind<readonly string[]> {
  return {
    shape: { type: "list", of: { type: "text" } },
    read: (ids, field) => {
      if (!Array.isArray(ids) || ids.length === 0 || ids.length > BULK_IDS_MAX)
        throw invalidField(
          field,
          `\`${field}\` must be an array of 1 to ${BULK_IDS_MAX} task ids: select more tasks with a \`filter\``,
        );
      const wrong = ids.findIndex((id) => !looksLikeTaskId(id));
      if (wrong === -1) return [...new Set(ids as string[])];
      throw invalidField(
        `${field}[${wrong}]`,
        `\`${field}[${wrong}]\` must be the id of a task, like "tsk_019a8f6e", not ${quoted(ids[wrong])}`,
      );
    },
  };
}

type Filter = ReadOf<typeof SELECTING_FIELDS>;

/** The same fields as in the filter of a list. */
function selection(): Kind<InputOf<typeof SELECTING_FIELDS>, Filter> {
  const kind = object(SELECTING_FIELDS);
  return {
    ...kind,
    read: (value, field, reading) => {
      if (isObject(value)) return kind.read(value, field, reading);
      throw invalidField(field, `\`${field}\` must be an object, as in \`{"state": "queued"}\``);
    },
  };
}

function parseFilter(
  action: BulkAction,
  filter: Filter,
  given: Fields,
): Pick<ParsedBulk, "selection" | "filter"> {
  if (Object.keys(filter).length === 0)
    throw invalidField(
      "filter",
      "`filter` is empty and would cover every task: select tasks, for instance by `state` or `agentId`",
    );
  const selection = selectionOf(filter, given, "filter.");
  const text = JSON.stringify(withoutNulls(given));
  if (text.length > FILTER_LENGTH_MAX)
    throw invalidField("filter", `\`filter\` must be at most ${FILTER_LENGTH_MAX} characters of JSON`);
  const able = BULK_TASK_STATES[action];
  const states = able.filter((state) => selection.states?.includes(state) ?? true);
  if (states.length === 0)
    throw invalidField(
      "filter.state",
      `\`filter.state\` must name a state that \`${action}\` can act on: ${able.join(", ")}`,
    );
  return { selection: { ...selection, states }, filter: JSON.parse(text) as Fields };
}
