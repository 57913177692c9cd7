import { useEffect, useState } from "react";
import { RotaError } from "../../../../src/client/index.ts";
import { sentenceOf } from "../../api/errors.ts";
import { useSession } from "../../api/session.tsx";
import { Coded } from "../../parts/coded.tsx";
import { sayRelative } from "../../parts/format.ts";
import { Icon } from "../../parts/icon.tsx";
import { useNow } from "../../parts/time.tsx";
import { keepPreviousData, useQuery } from "../../queries/use-query.ts";
import { formatInZone, nextClockChange, offsetIn, wallTime } from "./zoned-time.ts";

/** The preview is requested this long after the last keystroke. */
const TYPING_MS = 250;
const HOUR_MS = 3_600_000;
/** Enough to see the day before, the day itself and the day after. */
const AROUND = { beforeMs: 30 * HOUR_MS, count: 3 };

interface Draft {
  readonly schedule: string;
  readonly tz: string;
}

/** The preview of a schedule while the user types: its next due times, and the effect of the next clock change. */
export function usePreview(draft: Draft) {
  const { client } = useSession();
  const { schedule, tz } = useResting(draft);
  const isEmpty = schedule.trim() === "";
  const options = { enabled: !isEmpty, staleTime: 60_000, placeholderData: keepPreviousData };
  const next = useQuery({
    ...options,
    queryKey: ["schedule-preview", schedule, tz],
    queryFn: ({ signal }) => client.schedules.preview({ schedule, tz }, { signal }),
  });
  const isKnown = next.error === null && !next.isPlaceholderData && next.data?.kind === "recurring";
  const change = useQuery({
    ...options,
    queryKey: ["schedule-preview", schedule, tz, "change"],
    enabled: !isEmpty && isKnown,
    queryFn: async ({ signal }) => {
      const at = nextClockChange(tz, Date.now());
      if (at === undefined) return null;
      const from = new Date(at - AROUND.beforeMs);
      return client.schedules.preview({ schedule, tz, from, count: AROUND.count }, { signal });
    },
  });
  return { schedule, tz, isEmpty, next, change: isKnown ? change.data : undefined };
}

function useResting(draft: Draft): Draft {
  const [resting, setResting] = useState(draft);
  const { schedule, tz } = draft;
  useEffect(() => {
    const timer = setTimeout(() => setResting({ schedule, tz }), TYPING_MS);
    return () => clearTimeout(timer);
  }, [schedule, tz]);
  return resting;
}

/** The preview beside the form. */
export function PreviewPane({ preview }: { readonly preview: ReturnType<typeof usePreview> }) {
  const { isEmpty, next, change, tz } = preview;
  if (isEmpty) return <p className="muted">The next times appear here as you write.</p>;
  if (next.error !== null) return <NotUnderstood error={next.error} />;
  if (next.data === undefined) return null;
  const { normalized, notes } = next.data;
  const atChange = change !== undefined && change !== null && change.notes.length > 0 ? change : undefined;
  const odd = atChange && oddOf(atChange.next, tz);
  const allNotes = [...new Set([...notes, ...(atChange?.notes ?? [])])];
  return (
    <>
      <p className="said-when">
        <Icon name="check" />
        {normalized}
      </p>
      <div>
        <h3>{next.data.next.length === 1 ? "Due" : `Next ${next.data.next.length}`}</h3>
        <Moments moments={next.data.next} zone={tz} />
      </div>
      {atChange !== undefined && (
        <div>
          <h3>At the next clock change</h3>
          <ol className="nexts">
            {atChange.next.map((moment) => (
              <AroundChange key={moment} moment={moment} zone={tz} isOdd={moment === odd} />
            ))}
          </ol>
        </div>
      )}
      <Notes notes={allNotes} />
    </>
  );
}

/** The one that is due at another time of the day than all others. */
function oddOf(moments: readonly string[], zone: string): string | undefined {
  const clockOf = (moment: string) => wallTime(Date.parse(moment), zone).clock;
  const odd = moments.filter((moment, _index, [first = ""]) => clockOf(moment) !== clockOf(first));
  return odd.length === 1 ? odd[0] : undefined;
}

interface AroundChangeProps {
  readonly moment: string;
  readonly zone: string;
  readonly isOdd: boolean;
}

function AroundChange({ moment, zone, isOdd }: AroundChangeProps) {
  const at = Date.parse(moment);
  return (
    <li className={isOdd ? "odd" : undefined}>
      <span>{formatInZone(at, Date.now(), zone)}</span>
      <span className="r">{offsetIn(at, zone)}</span>
    </li>
  );
}

interface MomentsProps {
  /** ISO 8601. */
  readonly moments: readonly string[];
  readonly zone: string;
}

export function Moments({ moments, zone }: MomentsProps) {
  const now = useNow();
  return (
    <ol className="nexts">
      {moments.map((moment) => (
        <li key={moment}>
          <time dateTime={moment}>{formatInZone(Date.parse(moment), now, zone)}</time>
          <span className="r">{sayRelative(Date.parse(moment), now)}</span>
        </li>
      ))}
    </ol>
  );
}

export function Notes({ notes }: { readonly notes: readonly string[] }) {
  return notes.map((note) => (
    <div className="callout" key={note}>
      <Icon name="clock" />
      <span>{note}</span>
    </div>
  ));
}

function NotUnderstood({ error }: { readonly error: Error }) {
  const accepted = error instanceof RotaError ? error.details?.["accepted"] : undefined;
  return (
    <>
      <p className="err" role="alert">
        <Icon name="alert" size={14} />
        <Coded text={sentenceOf(error)} />
      </p>
      {Array.isArray(accepted) && (
        <div>
          <h3>Accepted forms</h3>
          <ul className="nexts">
            {accepted.map((form) => (
              <li key={String(form)}>{String(form)}</li>
            ))}
          </ul>
        </div>
      )}
    </>
  );
}
