import { Temporal } from "temporal-polyfill";
import { invalidField, quoted } from "../model/input/field-checks.ts";
import { nearestName } from "../model/text/nearest-name.ts";
import { DAY_MS } from "./wall-clock.ts";

/** A stretch of time in which a zone's clocks run evenly, from one clock change to the next. */
export interface ZoneSpan {
  /** Its first moment, or -Infinity. */
  readonly startMs: number;
  /** The first moment that no longer belongs to it, or Infinity. */
  readonly endMs: number;
  /** What to add to a moment to get the time on the wall. */
  readonly offsetMs: number;
  /** The same before it began; its own where nothing came before. */
  readonly offsetBeforeMs: number;
}

/** Refuses what is no IANA zone; answers it as it is usually written. */
export function checkZone(tz: unknown, field = "tz"): string {
  if (typeof tz === "string" && ZONE_NAME.test(tz)) {
    try {
      Intl.DateTimeFormat("en", { timeZone: tz });
      // Intl itself would answer Asia/Kathmandu with the name that it had before.
      return zoned(tz, 0).timeZoneId;
    } catch {
      // No such zone: told below.
    }
  }
  const nearest = typeof tz === "string" ? nearestZone(tz) : undefined;
  const hint = nearest === undefined ? "" : `: did you mean ${nearest}?`;
  throw invalidField(
    field,
    `\`${field}\` must be an IANA time zone like Europe/Berlin or UTC, not ${quoted(tz)}${hint}`,
  );
}

/** The zone of this machine; UTC where it has none with a name, since that is what its clock then shows. */
export function localZone(): string {
  // Typed as a text, but not there when the machine is set to a zone that does not exist.
  const { timeZone } = Intl.DateTimeFormat().resolvedOptions() as { timeZone?: string };
  try {
    return checkZone(timeZone);
  } catch {
    return "UTC";
  }
}

/** An offset like +02:00 is a zone to Intl, but knows nothing of the clock changes that its author lives with. */
const ZONE_NAME = /^[a-z][\w+/-]{0,63}$/i;

/** People name the city, or slip in a letter. */
function nearestZone(tz: string): string | undefined {
  const zones = Intl.supportedValuesOf("timeZone");
  const city = tz.trim().replaceAll(" ", "_").toLowerCase();
  return zones.find((zone) => zone.toLowerCase().endsWith(`/${city}`)) ?? nearestName(tz, zones);
}

/** The stretch between two clock changes that a moment lies in. */
export function spanAt(tz: string, moment: number): ZoneSpan {
  const spans = spansOf(tz);
  let low = 0;
  let high = spans.length;
  while (low < high) {
    const middle = (low + high) >>> 1;
    if ((spans[middle] as ZoneSpan).endMs <= moment) low = middle + 1;
    else high = middle;
  }
  const known = spans[low];
  if (known !== undefined && known.startMs <= moment) return known;
  const found = findSpan(tz, moment);
  // Whoever looks centuries ahead does so once: all is found again when it is asked for.
  if (spans.length >= SPANS_MAX) spans.length = 0;
  spans.splice(Math.min(low, spans.length), 0, found);
  return found;
}

/** Two hundred years of a zone's clock changes. */
const SPANS_MAX = 400;

/**
 * Looking for a clock change asks Intl dozens of times, so what was found is remembered, in the order of time: two spans
 * for each year that was looked at, up to `SPANS_MAX`, in each of the few hundred zones.
 */
const spansByZone = new Map<string, ZoneSpan[]>();

function spansOf(tz: string): ZoneSpan[] {
  let spans = spansByZone.get(tz);
  if (spans === undefined) {
    spans = [];
    spansByZone.set(tz, spans);
  }
  return spans;
}

function findSpan(tz: string, moment: number): ZoneSpan {
  const at = zoned(tz, moment);
  // A change at this very moment begins the span: "previous" looks strictly before.
  const start = zoned(tz, moment + 1).getTimeZoneTransition("previous");
  const end = at.getTimeZoneTransition("next");
  return {
    startMs: start?.epochMilliseconds ?? Number.NEGATIVE_INFINITY,
    endMs: end?.epochMilliseconds ?? Number.POSITIVE_INFINITY,
    offsetMs: offsetOf(at),
    offsetBeforeMs: offsetOf(start === null ? at : zoned(tz, start.epochMilliseconds - 1)),
  };
}

function zoned(tz: string, moment: number): Temporal.ZonedDateTime {
  return Temporal.Instant.fromEpochMilliseconds(moment).toZonedDateTimeISO(tz);
}

function offsetOf(time: Temporal.ZonedDateTime): number {
  return time.offsetNanoseconds / 1_000_000;
}

/** What the clock on the wall shows at a moment. */
export function wallAt(tz: string, moment: number): number {
  return moment + spanAt(tz, moment).offsetMs;
}

/**
 * The moment at which the clock on the wall shows a time: the first where it shows it twice, the end of the gap where it
 * skips it.
 */
export function momentOf(tz: string, wall: number): number {
  // Nowhere is a clock a whole day from UTC, so that the walk begins before the moment.
  let span = spanAt(tz, wall - DAY_MS);
  while (wall >= span.endMs + span.offsetMs) span = spanAt(tz, span.endMs);
  return Math.max(wall - span.offsetMs, span.startMs);
}
