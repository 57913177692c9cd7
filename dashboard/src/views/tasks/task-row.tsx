import { type MouseEvent, memo } from "react";
import type { TaskRow as Row } from "../../../../src/client/index.ts";
import { formatShortCount, shortId } from "../../parts/format.ts";
import { Link } from "../../parts/router.tsx";
import { type Glyph, StateGlyph, stateTone, stateWord } from "../../parts/state.tsx";
import { priorityWord } from "../../parts/task-text.ts";
import { Moment, Span } from "../../parts/time.tsx";

interface TaskRowProps {
  readonly task: Row;
  readonly index: number;
  readonly isSelected: boolean;
  readonly isCursor: boolean;
  readonly canSelect: boolean;
  /** Its last column shows when it ended. */
  readonly isByEnd: boolean;
  /** Its offset in the list, in pixels. */
  readonly top: number;
  readonly onSelect: (index: number, isRange: boolean) => void;
}

/** One task in one line, or two lines on a phone. */
export const TaskRow = memo(function TaskRow(props: TaskRowProps) {
  const { task, index, isSelected, isCursor, canSelect, isByEnd, top, onSelect } = props;
  const { taskId, title, agentId, lane, priority, createdAt, completedAt, tokens, attempts } = task;
  const glyph = glyphOfRow(task);
  const select = (event: MouseEvent<HTMLInputElement>) => onSelect(index, event.shiftKey);
  return (
    <div
      className="lrow"
      role="row"
      data-cursor={isCursor ? "" : undefined}
      aria-rowindex={index + 2}
      aria-selected={isSelected}
      style={{ transform: `translateY(${top}px)` }}
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
          {title || shortId(taskId)}
        </Link>
      </span>
      <span role="cell" className="wide id c-id">
        {shortId(taskId)}
      </span>
      <span role="cell" className="c-agent" title={agentId}>
        {agentId}
      </span>
      <span role="cell" className="c-lane sub">
        {lane}
      </span>
      <span role="cell" className="wide sub c-prio">
        {priorityWord(priority)}
      </span>
      <span
        role="cell"
        className={`c-why ${stateTone(glyph) === "state-run" ? "sub" : (stateTone(glyph) ?? "sub")}`}
      >
        {task.error ?? stateWord(glyph)}
      </span>
      <span role="cell" className="num c-wait">
        <Wait task={task} />
      </span>
      <span role="cell" className="num c-run">
        <Run task={task} />
      </span>
      <span role="cell" className="num c-tok sub">
        {formatShortCount(tokens)}
      </span>
      <span role="cell" className="wide num sub c-tries">
        {attempts || "–"}
      </span>
      <span role="cell" className="num c-made muted">
        <Moment at={isByEnd ? (completedAt ?? createdAt) : createdAt} />
      </span>
    </div>
  );
});

/** A row does not contain the time of its retry, but the number of its attempts. */
function glyphOfRow({ state, attempts }: Row): Glyph {
  return state === "delayed" && attempts > 0 ? "retry" : state;
}

/** How long the task waited for its first start. A task that is not due yet does not wait. */
function Wait({ task }: { readonly task: Row }) {
  const { state, createdAt, startedAt, completedAt, attempts } = task;
  if (startedAt !== undefined) return <Span from={createdAt} to={startedAt} />;
  if (state === "rejected" || (state === "delayed" && attempts === 0)) return "–";
  return <Span from={createdAt} to={completedAt} />;
}

/** The time since its first start. A task between two attempts does not run. */
function Run({ task }: { readonly task: Row }) {
  const { state, startedAt, completedAt } = task;
  const isRunning = state === "running" || state === "assigned";
  if (startedAt === undefined || (completedAt === undefined && !isRunning)) return "–";
  return <Span from={startedAt} to={completedAt} />;
}
