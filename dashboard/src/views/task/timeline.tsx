import type { CSSProperties } from "react";
import type { Task } from "../../../../src/client/index.ts";
import { useSession } from "../../api/session.tsx";
import { formatClock, formatDuration } from "../../parts/format.ts";
import { Link } from "../../parts/router.tsx";
import { StateGlyph } from "../../parts/state.tsx";
import { useNow } from "../../parts/time.tsx";
import { useTimeZone } from "../../parts/zone.ts";
import { type Stretch, stretchesOf, ticksOf } from "./waterfall.ts";

/** Beyond this share of the width, in percent, a note is placed before its bar. */
const NOTE_BEFORE = 60;
/** With less room than this, in percent, beside the bar there is no note: all that it says is in the error above. */
const NOTE_ROOM = 20;
/** A bar that has not ended stops before the edge, to show that it is open. */
const OPEN_SHARE = 0.96;

/** Waiting, attempts and back-offs below each other on one axis. */
export function Timeline({ task, since }: { readonly task: Task; readonly since: string | undefined }) {
  const { may } = useSession();
  const now = useNow();
  const zone = useTimeZone();
  const stretches = stretchesOf(task, now, since);
  const from = Date.parse(task.createdAt);
  const end = Math.max(...stretches.map(({ to }) => to), from + 1);
  const isOpen = stretches.some((stretch) => stretch.isOpen);
  const length = (end - from) / (isOpen ? OPEN_SHARE : 1);
  const ticks = ticksOf(length);
  const share = (at: number) => (100 * (at - from)) / length;
  const ran = sum(stretches, ({ bar }) => bar !== "wait" && bar !== "back");
  const waited = sum(stretches, ({ bar }) => bar === "wait" || bar === "back");
  return (
    <section className="cell rule" id="timeline" aria-labelledby="timeline-head">
      <div className="cell-head">
        <h2 id="timeline-head">Timeline</h2>
        <span className="muted">
          {ran > 0 && `ran ${formatDuration(ran)}, `}waited {formatDuration(waited)}
        </span>
        {may("read") && (
          <Link className="more" href={`/events?taskId=${task.taskId}`}>
            Events
          </Link>
        )}
      </div>
      <div className="wf" style={{ "--step": `${ticks[0]?.at ?? 100}%` } as CSSProperties}>
        <div className="wf-axis" aria-hidden="true">
          <span />
          <span className="ticks">
            {[{ at: 0, text: formatClock(from, zone) }, ...ticks].map(({ at, text }) => (
              <span key={at} style={{ "--l": `${at}%` } as CSSProperties}>
                {text}
              </span>
            ))}
          </span>
          <span />
        </div>
        {stretches.map((stretch) => (
          <Row key={`${stretch.name} ${stretch.from}`} stretch={stretch} share={share} />
        ))}
      </div>
    </section>
  );
}

function Row({ stretch, share }: { readonly stretch: Stretch; readonly share: (at: number) => number }) {
  const { name, glyph, bar, from, to, isOpen, note } = stretch;
  const left = share(from);
  const right = share(to);
  const isBefore = right > NOTE_BEFORE;
  const hasRoom = (isBefore ? left : 100 - right) > NOTE_ROOM;
  return (
    <div className="wf-row" title={note}>
      <span className="wf-name">
        <StateGlyph state={glyph} />
        <span>{name}</span>
      </span>
      <span className="wf-track">
        <i
          className={`wf-bar wf-${bar} ${isOpen && bar !== "run" ? "wf-open" : ""}`}
          style={{ "--l": `${left}%`, "--w": `${right - left}%` } as CSSProperties}
        />
        {note !== undefined && hasRoom && (
          <span
            className={isBefore ? "wf-note before" : "wf-note"}
            style={{ "--l": `${isBefore ? left : right}%` } as CSSProperties}
          >
            {note}
          </span>
        )}
      </span>
      <span className="num">{formatDuration(to - from)}</span>
    </div>
  );
}

function sum(stretches: readonly Stretch[], which: (stretch: Stretch) => boolean): number {
  return stretches.filter(which).reduce((total, { from, to }) => total + to - from, 0);
}
