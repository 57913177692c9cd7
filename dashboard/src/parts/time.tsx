import { useSyncExternalStore } from "react";
import { formatClock, formatDuration, formatExact, formatMoment, isSameDay, sayRelative } from "./format.ts";
import { useTimeZone } from "./zone.ts";

/** One timer for all components that show time. It runs only while there are any. */
const listeners = new Set<() => void>();
let now = Date.now();
let timer: ReturnType<typeof setInterval> | undefined;

function subscribe(listener: () => void): () => void {
  listeners.add(listener);
  if (timer === undefined) now = Date.now();
  timer ??= setInterval(() => {
    if (document.hidden) return;
    now = Date.now();
    for (const each of listeners) each();
  }, 1_000);
  return () => {
    listeners.delete(listener);
    if (listeners.size > 0) return;
    clearInterval(timer);
    timer = undefined;
  };
}

/** The current time, updated every second. */
export function useNow(): number {
  return useSyncExternalStore(subscribe, () => now);
}

interface MomentProps {
  /** RFC 3339. */
  readonly at: string;
  readonly className?: string;
}

/** A time in short form, with the exact time on hover. */
export function Moment({ at, className }: MomentProps) {
  const shown = useNow();
  const zone = useTimeZone();
  const time = Date.parse(at);
  return (
    <time
      className={className}
      dateTime={at}
      title={`${formatExact(time, zone)}, ${sayRelative(time, shown)}`}
    >
      {formatMoment(time, shown, zone)}
    </time>
  );
}

/** The same to the second. */
export function Clock({ at }: MomentProps) {
  const shown = useNow();
  const zone = useTimeZone();
  const time = Date.parse(at);
  const clock = formatClock(time, zone);
  return (
    <time dateTime={at} title={`${formatExact(time, zone)}, ${sayRelative(time, shown)}`}>
      {isSameDay(time, shown, zone) ? clock : `${formatMoment(time, shown, zone)}, ${clock}`}
    </time>
  );
}

interface RelativeProps extends MomentProps {
  /** Whether it cannot be later than now, whatever the clock of this browser says. */
  readonly isPast?: boolean;
}

/** How long ago, or in how long, with the exact time on hover. */
export function Relative({ at, className, isPast = false }: RelativeProps) {
  const shown = useNow();
  const zone = useTimeZone();
  const time = isPast ? Math.min(Date.parse(at), shown) : Date.parse(at);
  return (
    <time className={className} dateTime={at} title={formatExact(time, zone)}>
      {sayRelative(time, shown)}
    </time>
  );
}

/** The duration between two times, or until now. */
export function Span({ from, to }: { readonly from: string; readonly to?: string | null | undefined }) {
  const start = Date.parse(from);
  return to ? formatDuration(Date.parse(to) - start) : <Running from={start} />;
}

function Running({ from }: { readonly from: number }) {
  return formatDuration(useNow() - from);
}
