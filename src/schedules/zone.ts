import { Temporal } from "temporal-polyfill";
import { invalidField, quoted } from "../model/input/field-checks.ts";
import { nearestName } from "../model/text/nearest-name.ts";
import { DAY_MS } from "./wall-clock.ts";

/** The time from one clock change of a zone to the next. Its offset from UTC is constant. */
export interface ZoneSpan {
  /** Its first moment, or -Infinity. */
  readonly startMs: number;
  /** The first moment after it, or Infinity. */
  readonly endMs: number;
  /** Add this to a moment to get the local time. */
  readonly offsetMs: number;
  /** The offset of the span before it; its own if there is none. */
  readonly offsetBeforeMs: number;
}

/** Throws if the value is not an IANA zone. Returns the zone in its usual spelling. */
export function checkZone(tz: unknown, field = "tz"): string {
  if (typeof tz === "string" && ZONE_NAME.test(tz)) {
    try {
      Intl.DateTimeFormat("en", { timeZone: tz });
      // Intl itself would return the former name of Asia/Kathmandu.
      return zoned(tz, 0).timeZoneId;
    } catch {
      // No such zone: the error below is thrown.
    }
  }
  const nearest = typeof tz === "string" ? nearestZone(tz) : undefined;
  const hint = nearest === undefined ? "" : `: did you mean ${nearest}?`;
  throw invalidField(
    field,
    `\`${field}\` must be an IANA time zone like Europe/Berlin or UTC, not ${quoted(tz)}${hint}`,
  );
}

/** The zone of this machine; UTC if it has none with a name, since its clock then shows UTC. */
export function localZone(): string {
  // The type says string, but it is undefined if the machine is set to a zone that does not exist.
  const { timeZone } = Intl.DateTimeFormat().resolvedOptions() as { timeZone?: string };
  try {
    return checkZone(timeZone);
  } catch {
    return "UTC";
  }
}

/** Intl accepts an offset like +02:00 as a zone, but it has no clock changes, which users of a local time expect. */
const ZONE_NAME = /^[a-z][\w+/-]{0,63}$/i;

/** Users may write only the city, or mistype a letter. */
function nearestZone(tz: string): string | undefined {
  const zones = Intl.supportedValuesOf("timeZone");
  const city = tz.trim().replaceAll(" ", "_").toLowerCase();
  return zones.find((zone) => zone.toLowerCase().endsWith(`/${city}`)) ?? nearestName(tz, zones);
}

/** The span between two clock changes that contains a moment. */
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
  // The cache is full after a look centuries ahead, which is rare. Cleared spans are found again when needed.
  if (spans.length >= SPANS_MAX) spans.length = 0;
  spans.splice(Math.min(low, spans.length), 0, found);
  return found;
}

/** Two hundred years of a zone's clock changes. */
const SPANS_MAX = 400;

/**
 * Finding a clock change takes dozens of calls of Intl, so the spans are cached in order of time: two for each year that was
 * needed, up to `SPANS_MAX`, for each of the few hundred zones.
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
  // A change at this very moment begins the span, but "previous" finds only earlier ones.
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

/** The local time of a zone at a moment. */
export function wallAt(tz: string, moment: number): number {
  return moment + spanAt(tz, moment).offsetMs;
}

/**
 * The moment of a local time: the first if the clock shows it twice, the end of the gap if the clock skips it.
 */
export function momentOf(tz: string, wall: number): number {
  // No offset from UTC is a whole day, so the walk begins before the moment.
  let span = spanAt(tz, wall - DAY_MS);
  while (wall >= span.endMs + span.offsetMs) span = spanAt(tz, span.endMs);
  return Math.max(wall - span.offsetMs, span.startMs);
}
