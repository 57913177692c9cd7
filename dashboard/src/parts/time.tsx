import { type ReactNode, useSyncExternalStore } from "react";
import { formatClock, formatDuration, formatExact, formatMoment, isSameDay, sayRelative } from "./format.ts";
import { useToast } from "./toast.tsx";
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
  readonly className?: string | undefined;
}

interface TimeProps extends MomentProps {
  readonly time: number;
  /** After the exact time. */
  readonly note?: string;
  readonly children: ReactNode;
}

/** A time with the exact one on hover, and on a click or tap, since a phone has no hover. */
function Time({ at, className, time, note = "", children }: TimeProps) {
  const toast = useToast();
  const exact = formatExact(time, useTimeZone()) + note;
  return (
    // biome-ignore lint/a11y/useKeyWithClickEvents: with a keyboard and a screen reader, the title is read.
    <time className={className} dateTime={at} title={exact} onClick={() => toast(exact)}>
      {children}
    </time>
  );
}

/** A time in short form. */
export function Moment({ at, className }: MomentProps) {
  const shown = useNow();
  const zone = useTimeZone();
  const time = Date.parse(at);
  return (
    <Time at={at} time={time} note={`, ${sayRelative(time, shown)}`} className={className}>
      {formatMoment(time, shown, zone)}
    </Time>
  );
}

/** The same to the second. */
export function Clock({ at }: MomentProps) {
  const shown = useNow();
  const zone = useTimeZone();
  const time = Date.parse(at);
  const clock = formatClock(time, zone);
  return (
    <Time at={at} time={time} note={`, ${sayRelative(time, shown)}`}>
      {isSameDay(time, shown, zone) ? clock : `${formatMoment(time, shown, zone)}, ${clock}`}
    </Time>
  );
}

interface RelativeProps extends MomentProps {
  /** Whether it cannot be later than now, whatever the clock of this browser says. */
  readonly isPast?: boolean;
}

/** How long ago, or in how long. */
export function Relative({ at, className, isPast = false }: RelativeProps) {
  const shown = useNow();
  const time = isPast ? Math.min(Date.parse(at), shown) : Date.parse(at);
  return (
    <Time at={at} time={time} className={className}>
      {sayRelative(time, shown)}
    </Time>
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
