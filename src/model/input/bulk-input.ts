import { BULK_ACTIONS, BULK_IDS_MAX, BULK_LIMIT_MAX, BULK_TASK_STATES, type BulkAction } from "../bulk.ts";
import { RotaError } from "../errors.ts";
import { looksLikeTaskId } from "../task-id.ts";
import type { TaskState } from "../task-state.ts";
import { optionalChoice } from "./choice-input.ts";
import {
  checkKnown,
  type Fields,
  invalidField,
  isObject,
  optionalNumber,
  quoted,
  withoutNulls,
} from "./field-checks.ts";
import { type ParsedTaskFilter, parseTaskFilter, SELECTING_FIELDS } from "./task-filter-input.ts";

/** A filter with every field set is shorter than this. */
const FILTER_LENGTH_MAX = 4_000;

export type ParsedSelection = Omit<ParsedTaskFilter, "limit" | "cursor"> & {
  readonly states: readonly TaskState[];
};

export interface ParsedBulk {
  readonly action: BulkAction;
  readonly limit: number;
  /** Null: `selection` selects the tasks. No id is there twice. */
  readonly ids: readonly string[] | null;
  readonly selection: ParsedSelection | null;
  /** The filter as the caller sent it; null: the caller sent `ids`. */
  readonly filter: Fields | null;
}

export const BULK_FIELDS = ["action", "ids", "filter", "limit"] as const;

/** Parses the body of a bulk action. Throws `invalid_field`. */
export function parseBulkInput(input: unknown): ParsedBulk {
  if (!isObject(input)) throw invalidField("action", "send an object with `action`, and `ids` or `filter`");
  checkKnown(input, BULK_FIELDS);
  const given = withoutNulls(input);
  const action = optionalChoice(given, "action", BULK_ACTIONS);
  if (action === undefined)
    throw invalidField("action", `\`action\` is missing: it is one of ${BULK_ACTIONS.join(", ")}`);
  const limit = optionalNumber(given, "limit", { min: 1, max: BULK_LIMIT_MAX }) ?? BULK_LIMIT_MAX;
  const { ids, filter } = given;
  if (ids === undefined && filter === undefined)
    throw invalidField(
      "filter",
      '`filter` is missing: select tasks, as in `{"state": "queued"}`, or name them in `ids`',
    );
  if (ids !== undefined && filter !== undefined)
    throw invalidField("filter", "`filter` and `ids` exclude each other: leave one of them out");
  if (ids !== undefined) return { action, limit, ids: parseIds(ids), selection: null, filter: null };
  return { action, limit, ids: null, ...parseFilter(action, filter) };
}

function parseIds(ids: unknown): string[] {
  if (!Array.isArray(ids) || ids.length === 0 || ids.length > BULK_IDS_MAX)
    throw invalidField(
      "ids",
      `\`ids\` must be an array of 1 to ${BULK_IDS_MAX} task ids: select more tasks with a \`filter\``,
    );
  const wrong = ids.findIndex((id) => !looksLikeTaskId(id));
  if (wrong !== -1)
    throw invalidField(
      `ids[${wrong}]`,
      `\`ids[${wrong}]\` must be the id of a task, like "tsk_019a8f6e", not ${quoted(ids[wrong])}`,
    );
  return [...new Set(ids as string[])];
}

function parseFilter(action: BulkAction, filter: unknown): Pick<ParsedBulk, "selection" | "filter"> {
  if (!isObject(filter))
    throw invalidField("filter", '`filter` must be an object, as in `{"state": "queued"}`');
  const given = withoutNulls(filter);
  checkKnown(given, SELECTING_FIELDS, "filter.");
  if (Object.values(given).every((value) => value === undefined))
    throw invalidField(
      "filter",
      "`filter` is empty and would cover every task: select tasks, for instance by `state` or `agentId`",
    );
  const { limit: _limit, ...selection } = withinFilter(() => parseTaskFilter(given));
  const text = JSON.stringify(given);
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

/** Puts `filter.` before the name of the field in errors of `parse`. */
function withinFilter<Result>(parse: () => Result): Result {
  try {
    return parse();
  } catch (error) {
    const field = error instanceof RotaError ? error.details?.["field"] : undefined;
    if (!(error instanceof RotaError) || typeof field !== "string") throw error;
    const message = error.message.replaceAll(`\`${field}\``, `\`filter.${field}\``);
    throw invalidField(`filter.${field}`, message);
  }
}
