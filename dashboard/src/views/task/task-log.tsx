import { useLayoutEffect, useRef, useState } from "react";
import type { TaskLog as Log, Task } from "../../../../src/client/index.ts";
import { useSession } from "../../api/session.tsx";
import { useLiveState } from "../../live/live.tsx";
import { CopyButton } from "../../parts/copy.tsx";
import { countOf, formatCount, formatExact } from "../../parts/format.ts";
import { useTimeZone } from "../../parts/zone.ts";
import { keepPreviousData, useQuery } from "../../queries/use-query.ts";

/** Lines shown at first: the newest. */
const SHOWN_LINES = 200;
const LINES_MAX = 2_000;
/** If the user has scrolled to within this distance of the end, the log follows new lines. */
const END_PX = 24;
/** Log lines publish no events: while the task runs, they are polled at this interval. */
const EVERY_MS = 2_000;

/** The log lines of each attempt. Renders nothing if there are none. */
export function TaskLog({ task }: { readonly task: Task }) {
  const { client } = useSession();
  const { isPaused } = useLiveState();
  const { taskId, state, attempts } = task;
  /** Undefined: the newest attempt with log lines. */
  const [chosen, setChosen] = useState<number>();
  const { data } = useQuery({
    queryKey: ["log", taskId, chosen],
    queryFn: ({ signal }) =>
      client.tasks.logs(
        taskId,
        { limit: LINES_MAX, ...(chosen === undefined ? {} : { attempt: chosen }) },
        { signal },
      ),
    refetchInterval: state === "running" && !isPaused ? EVERY_MS : false,
    placeholderData: keepPreviousData,
    meta: { live: (event) => event.taskId === taskId && event.type !== "task.progress" },
  });
  if (data === undefined || (data.attempt === null && chosen === undefined)) return null;
  return (
    <section className="cell rule" id="log" aria-labelledby="log-head">
      <div className="cell-head">
        <h2 id="log-head">Log</h2>
        {attempts.length > 1 && (
          <fieldset className="more seg">
            <legend className="vh">Attempt</legend>
            {attempts.map(({ number }) => (
              <label key={number}>
                <input
                  type="radio"
                  name="attempt"
                  checked={number === (chosen ?? data.attempt)}
                  onChange={() => setChosen(number)}
                />
                <span className="vh">Attempt </span>
                {number}
              </label>
            ))}
          </fieldset>
        )}
        <CopyButton text={() => data.lines.map(textOf).join("\n")} what="log" />
      </div>
      <Lines key={chosen} log={data} />
    </section>
  );
}

function Lines({ log: { lines, dropped } }: { readonly log: Log }) {
  const [isAll, setAll] = useState(false);
  const zone = useTimeZone();
  const list = useRef<HTMLOListElement>(null);
  // Scroll to the newest line, as in a terminal, unless the user has scrolled up.
  const isAtEnd = useRef(true);
  // biome-ignore lint/correctness/useExhaustiveDependencies: whenever lines came.
  useLayoutEffect(() => {
    if (isAtEnd.current) list.current?.scrollTo({ top: list.current.scrollHeight });
  }, [lines]);
  const shown = isAll ? lines : lines.slice(-SHOWN_LINES);
  if (lines.length === 0) return <p className="sub">This attempt logged nothing.</p>;
  return (
    <div className="well">
      <ol
        ref={list}
        className="log"
        tabIndex={0}
        aria-label="Log"
        onScroll={({ currentTarget: { scrollTop, clientHeight, scrollHeight } }) => {
          isAtEnd.current = scrollTop + clientHeight > scrollHeight - END_PX;
        }}
      >
        {dropped > 0 && (
          <li className="cutline">{countOf(dropped, "older line")} of this attempt are no longer kept.</li>
        )}
        {shown.length < lines.length && (
          <li className="cutline">
            <button type="button" className="link" onClick={() => setAll(true)}>
              Show all {formatCount(lines.length)} lines
            </button>
          </li>
        )}
        {shown.map(({ n, at, level, text }) => (
          <li key={n} className={level}>
            <time dateTime={at} title={formatExact(Date.parse(at), zone)}>
              {clockOf(at, zone)}
            </time>
            <span className="lv">{level}</span>
            <span className="tx">{text}</span>
          </li>
        ))}
      </ol>
    </div>
  );
}

/** `20:39:24.020`. */
function clockOf(at: string, zone: string | undefined): string {
  return formatExact(Date.parse(at), zone).split(" ")[1] ?? at;
}

function textOf({ at, level, text }: Log["lines"][number]): string {
  return `${at} ${level} ${text}`;
}
