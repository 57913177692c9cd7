import { checkAgentId } from "./agent-id.ts";
import { checkKnown, checkName, type Fields, invalidField } from "./field-checks.ts";
import { meantName } from "./nearest-name.ts";
import { type Page, parsePage } from "./page-input.ts";
import { optionalPriority } from "./priority-input.ts";
import { optionalScheduleId } from "./serial-id.ts";
import { optionalSessionKey } from "./session-key.ts";
import { TASK_STATES, type TaskState } from "./task-state.ts";

/** What other systems call these states. */
const STATE_ALIASES: Readonly<Record<string, TaskState>> = { pending: "queued", completed: "done" };

export interface ParsedTaskFilter extends Page {
  readonly agent?: string;
  readonly states?: readonly TaskState[];
  readonly priority?: number;
  /** In place of `priority`: this and below. */
  readonly priorityMax?: number;
  readonly batch?: string;
  readonly lane?: string;
  readonly session?: string;
  readonly schedule?: number;
}

const KNOWN = [
  "agentId",
  "state",
  "priority",
  "batchId",
  "sessionKey",
  "lane",
  "scheduleId",
  "limit",
  "cursor",
] as const;

/** Checks which tasks somebody wants to see. Throws `invalid_field`. */
export function parseTaskFilter(filter: Fields): ParsedTaskFilter {
  checkKnown(filter, KNOWN);
  const agent = filter["agentId"] === undefined ? undefined : checkAgentId(filter["agentId"]);
  const states = parseStates(filter["state"]);
  const priority = parsePriority(filter);
  const batch = checkName(filter, "batchId", "the id of a batch");
  const lane = checkName(filter, "lane", "the name of a lane");
  const session = optionalSessionKey(filter);
  const schedule = optionalScheduleId(filter);
  return {
    ...(agent === undefined ? {} : { agent }),
    ...(states === undefined ? {} : { states }),
    ...priority,
    ...(batch === undefined ? {} : { batch }),
    ...(lane === undefined ? {} : { lane }),
    ...(session === undefined ? {} : { session }),
    ...(schedule === undefined ? {} : { schedule }),
    ...parsePage(filter),
  };
}

/** The name `critical` stands for all that is, however it was written; a number for itself. */
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
  throw invalidField("state", `unknown \`state\`: it is one of ${TASK_STATES.join(", ")}${hint}`);
}
