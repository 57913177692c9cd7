import { invalidField } from "../model/input/field-checks.ts";
import { SCHEDULE_PAGE_MAX } from "../model/schedule.ts";

/**
 * Where a list of schedules continues. The first page is sorted by last change, all others by id. Since an id never changes,
 * edits between two pages do not make the list skip or repeat a schedule. Later pages leave out the schedules of the first page.
 */
export interface ScheduleCursor {
  /** Only ids below this one; null: from the newest on. */
  readonly below: number | null;
  /** Ids that the first page has shown. */
  readonly shown: readonly number[];
}

const START = "start";
const FORM = /^(start|\d{1,16})(?:-(\d{1,16}(?:\.\d{1,16})*))?$/;
/** As many ids of 16 digits as a page has. */
const LENGTH_MAX = 17 * (SCHEDULE_PAGE_MAX + 1);

export function scheduleCursorText({ below, shown }: ScheduleCursor): string {
  const from = below === null ? START : String(below);
  return shown.length === 0 ? from : `${from}-${shown.join(".")}`;
}

/** Throws `invalid_field`. */
export function parseScheduleCursor(text: string): ScheduleCursor {
  const found = text.length <= LENGTH_MAX ? FORM.exec(text) : null;
  if (found === null) {
    throw invalidField(
      "cursor",
      `\`cursor\` must be the \`next_cursor\` of the page before, or "${START}" for all by id, newest first`,
    );
  }
  const [, from = START, ids] = found;
  return {
    below: from === START ? null : Number(from),
    shown: ids === undefined ? [] : ids.split(".").map(Number),
  };
}
