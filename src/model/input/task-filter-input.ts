import { checkAgentId } from "../agent.ts";
import { optionalScheduleId } from "../serial-id.ts";
import { optionalSessionKey } from "../session-key.ts";
import { parseTaskCursor } from "../task-cursor.ts";
import { TASK_ORDERS, type TaskOrder } from "../task-order.ts";
import { TASK_STATES, type TaskState } from "../task-state.ts";
import { meantName } from "../text/nearest-name.ts";
import { optionalChoice } from "./choice-input.ts";
import { checkKnown, checkName, type Fields, invalidField, optionalMoment, quoted } from "./field-checks.ts";
import { type Page, parseLimit } from "./page-input.ts";
import { optionalPriority } from "./priority-input.ts";

/** Names of these states in other systems. */
const STATE_ALIASES: Readonly<Record<string, TaskState>> = { pending: "queued", completed: "done" };

export interface ParsedTaskFilter extends Page {
  readonly agent?: string;
  readonly states?: readonly TaskState[];
  readonly priority?: number;
  /** Instead of `priority`: this priority and below. */
  readonly priorityMax?: number;
  readonly batch?: string;
  readonly lane?: string;
  readonly session?: string;
  readonly schedule?: number;
  readonly search?: string;
  readonly from?: number;
  readonly to?: number;
  readonly order?: TaskOrder;
}

/** A search is for an id or a key: none is longer. */
const SEARCH_MAX = 200;

/** The fields of a filter that select tasks. */
export const SELECTING_FIELDS = [
  "agentId",
  "state",
  "priority",
  "batchId",
  "sessionKey",
  "lane",
  "scheduleId",
  "q",
  "from",
  "to",
] as const;

const KNOWN = [...SELECTING_FIELDS, "order", "limit", "cursor"] as const;

/** Parses the filter of a list of tasks. Throws `invalid_field`. */
export function parseTaskFilter(filter: Fields): ParsedTaskFilter {
  checkKnown(filter, KNOWN);
  const agent = filter["agentId"] === undefined ? undefined : checkAgentId(filter["agentId"]);
  const states = parseStates(filter["state"]);
  const priority = parsePriority(filter);
  const batch = checkName(filter, "batchId", "the id of a batch");
  const lane = checkName(filter, "lane", "the name of a lane");
  const session = optionalSessionKey(filter);
  const schedule = optionalScheduleId(filter);
  const search = parseSearch(filter);
  const from = optionalMoment(filter, "from");
  const to = optionalMoment(filter, "to");
  if (from !== undefined && to !== undefined && from >= to)
    throw invalidField(
      "to",
      "`to` must be later than `from`: a task is listed from `from` on and before `to`",
    );
  const order = optionalChoice(filter, "order", TASK_ORDERS);
  const cursor = parseTaskCursor(filter, order);
  return {
    ...(agent === undefined ? {} : { agent }),
    ...(states === undefined ? {} : { states }),
    ...priority,
    ...(batch === undefined ? {} : { batch }),
    ...(lane === undefined ? {} : { lane }),
    ...(session === undefined ? {} : { session }),
    ...(schedule === undefined ? {} : { schedule }),
    ...(search === undefined ? {} : { search }),
    ...(from === undefined ? {} : { from }),
    ...(to === undefined ? {} : { to }),
    ...(order === undefined ? {} : { order }),
    ...(cursor === undefined ? {} : { cursor }),
    limit: parseLimit(filter),
  };
}

function parseSearch(filter: Fields): string | undefined {
  const what = "the id of a task or its beginning, the id of a batch, or the `key` of a task in a batch";
  const search = checkName(filter, "q", what);
  if (search !== undefined && (search.trim() === "" || search.length > SEARCH_MAX))
    throw invalidField("q", `\`q\` must be 1 to ${SEARCH_MAX} characters: ${what}`);
  return search;
}

/** The name `critical` matches all critical priorities; a number matches only itself. */
function parsePriority(filter: Fields): Pick<ParsedTaskFilter, "priority" | "priorityMax"> {
  const priority = optionalPriority(filter);
  if (priority === undefined) return {};
  return filter["priority"] === "critical" ? { priorityMax: priority } : { priority };
}

function parseStates(value: unknown): TaskState[] | undefined {
  if (value === undefined) return undefined;
  const words = typeof value === "string" ? value.split(",") : value;
  if (!Array.isArray(words)) throw invalidField("state", "`state` must be a state or an array of states");
  return [...new Set(words.map(parseState))];
}

function parseState(value: unknown): TaskState {
  const word = String(value).trim();
  if ((TASK_STATES as readonly string[]).includes(word)) return word as TaskState;
  const alias = Object.hasOwn(STATE_ALIASES, word) ? STATE_ALIASES[word] : undefined;
  if (alias !== undefined) return alias;
  const nearest = meantName(word, TASK_STATES);
  const hint = nearest === undefined ? "" : `; did you mean \`${nearest}\`?`;
  throw invalidField(
    "state",
    `\`state\` must be one of ${TASK_STATES.join(", ")}, not ${quoted(value)}${hint}`,
  );
}
