import { type CSSProperties, type MouseEvent, memo } from "react";
import { Link } from "wouter";
import type { Task } from "../../../../src/client/index.ts";
import { formatShortCount, shortId } from "../../parts/format.ts";
import { glyphOf, StateGlyph, stateTone, stateWord } from "../../parts/state.tsx";
import { priorityWord, stateNote, titleOf } from "../../parts/task-text.ts";
import { Moment, Span, useNow } from "../../parts/time.tsx";

interface TaskRowProps {
  readonly task: Task;
  readonly index: number;
  readonly isSelected: boolean;
  readonly isCursor: boolean;
  readonly canSelect: boolean;
  readonly style: CSSProperties;
  readonly measure: (element: HTMLElement | null) => void;
  readonly onSelect: (index: number, isRange: boolean) => void;
}

/** One task in one line; on a phone in two. */
export const TaskRow = memo(function TaskRow(props: TaskRowProps) {
  const { task, index, isSelected, isCursor, canSelect, style, measure, onSelect } = props;
  const { taskId, agentId, lane, priority, createdAt, usage, attempts } = task;
  const glyph = glyphOf(task);
  const select = (event: MouseEvent<HTMLInputElement>) => onSelect(index, event.shiftKey);
  return (
    <div
      ref={measure}
      className="lrow"
      role="row"
      data-index={index}
      data-cursor={isCursor ? "" : undefined}
      aria-rowindex={index + 2}
      aria-selected={isSelected}
      style={style}
    >
      <span role="cell" className="over no-cut">
        {canSelect && (
          <label className="check-hit">
            <input
              type="checkbox"
              className="check"
              aria-label={`Select ${shortId(taskId)}`}
              checked={isSelected}
              onChange={() => {}}
              onClick={select}
            />
          </label>
        )}
      </span>
      <span role="cell" className="no-cut">
        <StateGlyph state={glyph} label={stateWord(glyph)} />
      </span>
      <span role="cell" className="c-title">
        <Link className="main-link name" href={`/tasks/${taskId}`}>
          {titleOf(task)}
        </Link>
      </span>
      <span role="cell" className="wide id">
        {shortId(taskId)}
      </span>
      <span role="cell" className="c-agent" title={agentId}>
        {agentId}
      </span>
      <span role="cell" className="c-lane sub">
        {lane}
      </span>
      <span role="cell" className="wide sub">
        {priorityWord(priority)}
      </span>
      <span
        role="cell"
        className={`c-why ${stateTone(glyph) === "state-run" ? "sub" : (stateTone(glyph) ?? "sub")}`}
      >
        <Note task={task} />
      </span>
      <span role="cell" className="num c-wait">
        <Wait task={task} />
      </span>
      <span role="cell" className="num c-run">
        {task.startedAt === undefined ? "–" : <Span from={task.startedAt} to={endOf(task)} />}
      </span>
      <span role="cell" className="num c-tok sub">
        {formatShortCount(usage === undefined ? undefined : usage.inputTokens + usage.outputTokens)}
      </span>
      <span role="cell" className="wide num sub">
        {attempts === undefined || attempts.length === 0 ? "–" : attempts.length}
      </span>
      <span role="cell" className="num c-made muted">
        <Moment at={createdAt} />
      </span>
    </div>
  );
});

function Note({ task }: { readonly task: Task }) {
  return task.state === "delayed" ? <TickingNote task={task} /> : stateNote(task, 0);
}

function TickingNote({ task }: { readonly task: Task }) {
  return stateNote(task, useNow());
}

/** How long it waited to be started first. A task that is not due yet does not wait. */
function Wait({ task }: { readonly task: Task }) {
  const { state, createdAt, startedAt, completedAt, retryCount } = task;
  if (startedAt !== undefined) return <Span from={createdAt} to={startedAt} />;
  if (state === "rejected" || (state === "delayed" && retryCount === 0)) return "–";
  return <Span from={createdAt} to={completedAt} />;
}

/** A task between two attempts does not run. */
function endOf({ state, completedAt, attempts }: Task): string | undefined {
  if (state === "running" || state === "assigned") return undefined;
  return completedAt ?? attempts?.at(-1)?.endedAt ?? undefined;
}
