import type { OnceRule, Rule } from "../model/rule.ts";
import { wallText } from "./moment-text.ts";
import { patternOf } from "./moments.ts";
import { spanAt, type ZoneSpan } from "./zone.ts";

/** A long preview has two clock changes a year. A few notes are enough to understand them. */
const NOTES_MAX = 20;

/** Collects sentences about the effect of clock changes on due times of a rule, each once. The list begins at `from`. */
export class ClockNotes {
  readonly #note: NoteTaker;
  readonly #sentences = new Set<string>();
  #before: number;

  constructor(rule: Rule, from: number) {
    this.#note = noteTaker(rule, from);
    this.#before = from;
  }

  get sentences(): string[] {
    return [...this.#sentences];
  }

  /** Adds the next due time of the list. */
  add(moment: number): void {
    if (this.#sentences.size >= NOTES_MAX) return;
    const sentence = this.#note(moment, this.#before);
    if (sentence !== null) this.#sentences.add(sentence);
    this.#before = moment;
  }
}

/** Returns the note for a due time, given the one before it; null: none, as for most. */
type NoteTaker = (moment: number, before: number) => string | null;

function noteTaker(rule: Rule, from: number): NoteTaker {
  const { tz } = rule;
  if (rule.kind === "once") return () => noteOnce(rule);
  const elapsed: NoteTaker = (moment, before) => noteElapsed(tz, moment, before);
  if (rule.kind === "every") return elapsed;
  const pattern = patternOf(rule, from);
  if (!pattern.isFixed) return elapsed;
  return (moment) => {
    const span = spanAt(tz, moment);
    const skippedFrom = span.startMs + span.offsetBeforeMs;
    if (moment === span.startMs && skippedFrom < moment + span.offsetMs) {
      const due = pattern.next(skippedFrom - 1);
      if (due !== null && due < moment + span.offsetMs) return `${change(tz, span)}: ${SKIPPED}`;
    }
    const repeating = repeatAfter(tz, moment);
    return repeating === null ? null : `${change(tz, repeating)}: ${REPEATED}`;
  };
}

const SKIPPED = "what is due in between is due at the end of the gap, once.";
const REPEATED = "what is due in between is due the first time only.";

function noteOnce({ tz, atMs, movedFrom }: OnceRule): string | null {
  if (movedFrom !== undefined) {
    return `${change(tz, spanAt(tz, atMs))}: there is no ${movedFrom}, and it is due at the end of the gap.`;
  }
  const repeating = repeatAfter(tz, atMs);
  return repeating === null ? null : `${change(tz, repeating)}: this is the first of two such times.`;
}

/** A rule by elapsed time is not moved by a clock change, but its local times look as if it were. */
function noteElapsed(tz: string, moment: number, before: number): string | null {
  const span = spanAt(tz, moment);
  return spanAt(tz, before).offsetMs === span.offsetMs
    ? null
    : `${change(tz, span)}: this schedule goes on by elapsed time.`;
}

/** The next span, if the clock goes back at its start and shows the local time of `moment` again; null: it does not. */
function repeatAfter(tz: string, moment: number): ZoneSpan | null {
  const span = spanAt(tz, moment);
  if (span.endMs === Number.POSITIVE_INFINITY) return null;
  const following = spanAt(tz, span.endMs);
  return moment + span.offsetMs >= following.startMs + following.offsetMs ? following : null;
}

/** What the clock does at the start of a span. */
function change(tz: string, { startMs, offsetMs, offsetBeforeMs }: ZoneSpan): string {
  const verb = offsetMs > offsetBeforeMs ? "skips" : "goes back";
  return `In ${tz} the clock ${verb} from ${wallText(startMs + offsetBeforeMs)} to ${wallText(startMs + offsetMs)}`;
}
