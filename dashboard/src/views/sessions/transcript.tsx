import { type ReactNode, useCallback, useLayoutEffect, useRef, useState } from "react";
import type { RotaEvent, Task } from "../../../../src/client/index.ts";
import { useLiveEvents } from "../../live/live.tsx";
import { Button } from "../../parts/button.tsx";
import { formatCount, formatMoment, isSameDay, shortId } from "../../parts/format.ts";
import { JsonView } from "../../parts/json-view.tsx";
import { Empty } from "../../parts/notices.tsx";
import { Link } from "../../parts/router.tsx";
import { StateGlyph, stateWord } from "../../parts/state.tsx";
import { isWaiting } from "../../parts/task-text.ts";
import { Moment, Span } from "../../parts/time.tsx";
import { useTimeZone } from "../../parts/zone.ts";
import { answerIn, endIn, saidIn } from "./session-text.ts";
import type { Transcript } from "./use-transcript.ts";

/** Longer texts are cut: the page of the task shows the whole text. */
const TEXT_MAX = 4_000;
/** If the user has scrolled to within this distance of the end, the view follows new messages. */
const END_PX = 48;

interface TalkProps {
  readonly sessionKey: string;
  readonly transcript: Transcript;
  /** Below the messages, always visible. */
  readonly children: ReactNode;
}

/** Messages and replies, the newest at the end. */
export function Talk({ sessionKey, transcript, children }: TalkProps) {
  const { tasks, hasEarlier, loadEarlier } = transcript;
  const box = useRef<HTMLDivElement>(null);
  const isAtEnd = useRef(true);
  const belowPx = useRef(0);
  const progress = useProgress(sessionKey);
  const zone = useTimeZone();
  const said = tasks.filter((task) => !isWaiting(task));
  const days = said.map((task) => dayOf(task, zone));
  const first = tasks[0]?.taskId;
  // If the user is at the end, scrolls to new messages. Earlier messages must not move the view.
  // biome-ignore lint/correctness/useExhaustiveDependencies: whenever what is shown may have become longer.
  useLayoutEffect(() => {
    const element = box.current;
    if (element !== null && isAtEnd.current) element.scrollTop = element.scrollHeight;
  }, [tasks, progress]);
  // biome-ignore lint/correctness/useExhaustiveDependencies: when earlier ones have come.
  useLayoutEffect(() => {
    const element = box.current;
    if (element === null || isAtEnd.current || belowPx.current === 0) return;
    element.scrollTop = element.scrollHeight - belowPx.current;
    belowPx.current = 0;
  }, [first]);
  return (
    <div
      className="talk"
      ref={box}
      tabIndex={0}
      role="region"
      aria-label="Transcript"
      onScroll={({ currentTarget: { scrollTop, scrollHeight, clientHeight } }) => {
        isAtEnd.current = scrollHeight - scrollTop - clientHeight < END_PX;
      }}
    >
      <div className="talk-in" role="log" aria-label="Messages">
        {hasEarlier && (
          <Button
            className="earlier"
            onClick={() => {
              const { scrollHeight = 0, scrollTop = 0 } = box.current ?? {};
              isAtEnd.current = false;
              belowPx.current = scrollHeight - scrollTop;
              void loadEarlier();
            }}
          >
            Earlier messages
          </Button>
        )}
        {tasks.length === 0 && <Empty title="Nothing has been said yet">The first message begins it.</Empty>}
        {said.map((task, index) => (
          <Turn
            key={task.taskId}
            task={task}
            day={days[index] === days[index - 1] ? undefined : days[index]}
            progress={progress.get(task.taskId)}
          />
        ))}
      </div>
      {children}
    </div>
  );
}

/** The progress of the running tasks of a session, by task. */
function useProgress(key: string): ReadonlyMap<string, unknown> {
  const [progress, setProgress] = useState<ReadonlyMap<string, unknown>>(new Map());
  useLiveEvents(
    useCallback(
      (events: readonly RotaEvent[]) => {
        const own = events.filter(({ sessionKey }) => sessionKey === key);
        if (own.length === 0) return;
        setProgress((before) => {
          const after = new Map(before);
          for (const { type, taskId, progress: reported } of own) {
            if (type === "task.progress") after.set(taskId, reported);
            else after.delete(taskId);
          }
          return after;
        });
      },
      [key],
    ),
  );
  return progress;
}

interface TurnProps {
  readonly task: Task;
  /** Undefined: that of the message before. */
  readonly day: string | undefined;
  readonly progress: unknown;
}

function Turn({ task, day, progress }: TurnProps) {
  const { taskId, state, createdAt, startedAt, completedAt, usage } = task;
  return (
    <>
      {day !== undefined && <div className="day">{day}</div>}
      <div className="turn">
        <p className="say">
          <Text text={saidIn(task)} taskId={taskId} />
        </p>
        <div className="meta end">
          <Moment at={createdAt} />
        </div>
        <div className="ans">
          <Answer task={task} progress={progress} />
          <div className="meta">
            <StateGlyph state={state} label={stateWord(state)} />
            {state === "running" && <span className="state-run">Running</span>}
            {startedAt !== undefined && (
              <span className={state === "running" ? "state-run" : undefined}>
                <Span from={startedAt} to={completedAt} />
              </span>
            )}
            {usage !== undefined && (
              <span>
                {formatCount(usage.inputTokens)} in, {formatCount(usage.outputTokens)} out
              </span>
            )}
            <Link className="id" href={`/tasks/${taskId}`}>
              {shortId(taskId)}
            </Link>
          </div>
        </div>
      </div>
    </>
  );
}

function Answer({ task, progress }: { readonly task: Task; readonly progress: unknown }) {
  const { taskId, state, result } = task;
  if (state === "running" || state === "assigned") {
    const text = answerIn(progress);
    return (
      <p>
        {text !== undefined && <Text text={text} taskId={taskId} />}
        <span className="caret" />
      </p>
    );
  }
  if (state !== "done")
    return <p className={state === "cancelled" ? "muted" : "state-failed"}>{endIn(task)}</p>;
  const text = answerIn(result);
  if (text !== undefined) {
    return (
      <p>
        <Text text={text} taskId={taskId} />
      </p>
    );
  }
  return result === undefined || result === null ? (
    <p className="muted">No answer.</p>
  ) : (
    <JsonView value={result} label={`Answer of ${shortId(taskId)}`} />
  );
}

function Text({ text, taskId }: { readonly text: string; readonly taskId: string }) {
  if (text.length <= TEXT_MAX) return text;
  return (
    <>
      {text.slice(0, TEXT_MAX)}…{" "}
      <Link className="link" href={`/tasks/${taskId}`}>
        All of it
      </Link>
    </>
  );
}

/** `Today`, `8 Mar`, `8 Mar 2025`. */
function dayOf({ createdAt }: Task, zone: string | undefined): string {
  const [at, now] = [Date.parse(createdAt), Date.now()];
  return isSameDay(at, now, zone) ? "Today" : formatMoment(at, now, zone);
}
