import { ACCEPTED_FORMS } from "./accepted-forms.ts";
import type { CreateWrit, InvalidWrit, OrderWrit, Writ } from "./writ.ts";

/*
 * The response to a writ that an agent reads: a block of lines, the first of which repeats the writ. Times are in the server's
 * zone, as `minuteText` writes them.
 */

export interface ScheduledAnswer {
  readonly id: number;
  /** The canonical form. */
  readonly normalized: string;
  /** When it is due first. */
  readonly next: string;
  readonly agent: string;
}

export interface ListedSchedule {
  readonly id: number;
  readonly status: string;
  readonly normalized: string;
  /** Null when nothing is due. */
  readonly next: string | null;
  readonly agent: string;
  readonly message: string;
}

/** The response for a new schedule. */
export function scheduledBlock(writ: CreateWrit, { id, normalized, next, agent }: ScheduledAnswer): string {
  return block(writ, [
    `OK: scheduled #${id} ${normalized} (${next}) → ${agent}`,
    `  message: ${oneLine(writ.message)}`,
  ]);
}

/** `more`: how many further schedules are not listed. */
export function listBlock(writ: Writ, schedules: readonly ListedSchedule[], more = 0): string {
  if (schedules.length === 0) return block(writ, ["(none)"]);
  return block(writ, [...schedules.map(listLine), ...(more === 0 ? [] : [`and ${more} more`])]);
}

function listLine({ id, status, normalized, next, agent, message }: ListedSchedule): string {
  const due = next === null ? "" : `, next ${next}`;
  return `#${id} ${status} ${normalized}${due} → ${agent}: ${cut(oneLine(message), LISTED_MESSAGE_MAX)}`;
}

/** Many schedules with long messages would fill an agent's context. */
const LISTED_MESSAGE_MAX = 200;

/** The response for a schedule that was paused, resumed or canceled. */
export function doneBlock(writ: OrderWrit): string {
  return block(writ, [`OK: ${DONE[writ.kind]} #${writ.id}`]);
}

const DONE = { cancel: "canceled", pause: "paused", resume: "resumed" } as const;

/** The response for a writ that could not be executed. */
export function errorBlock(writ: Writ | InvalidWrit, reason: string): string {
  return block(writ, [`ERR: ${oneLine(reason)}`]);
}

/** The response for a writ that was not understood, with the accepted forms. */
export function misunderstoodBlock(writ: Writ | InvalidWrit, reason: string): string {
  const phrases = ACCEPTED_FORMS.map(({ form }) => form);
  const forms = writ.kind === "invalid" ? [...WRIT_FORMS, ...phrases] : phrases;
  return block(writ, [`ERR: ${oneLine(reason)}`, "  accepted forms:", ...forms.map((form) => `    ${form}`)]);
}

/** The forms of a writ, for a text that is not one. */
const WRIT_FORMS = [
  "/schedule PHRASE: MESSAGE",
  "/schedule list | cancel N | pause N | resume N",
  "where PHRASE is one of:",
];

export const NOT_RUNNING = "scheduler is not running";

export function noSchedule(id: number): string {
  return `no schedule #${id}`;
}

function block(writ: Writ | InvalidWrit, lines: readonly string[]): string {
  const asked = `/schedule ${askedText(writ)}`.trim();
  return [`[${cut(oneLine(asked), HEADER_MAX - 2)}]`, ...lines, "[END SCHEDULE]"].join("\n");
}

/** The header in its brackets fits a line of this many characters. */
const HEADER_MAX = 60;

function askedText(writ: Writ | InvalidWrit): string {
  switch (writ.kind) {
    case "create":
      return `create ${writ.phrase}: ${writ.message}`;
    case "list":
      return "list";
    case "invalid":
      return writ.text;
    default:
      return `${writ.kind} ${writ.id}`;
  }
}

/** A line break in a message must not look like the end of the block. */
function oneLine(text: string): string {
  return text.replaceAll(/\s+/g, " ").trim();
}

/** Cuts by characters, not inside one. */
function cut(text: string, lengthMax: number): string {
  const characters = [...text];
  return characters.length <= lengthMax ? text : `${characters.slice(0, lengthMax - 1).join("")}…`;
}
