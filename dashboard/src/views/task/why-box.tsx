import type { Explanation, Reason, Task, TaskFilter } from "../../../../src/client/index.ts";
import { useSession } from "../../api/session.tsx";
import { shortId } from "../../parts/format.ts";
import { Icon } from "../../parts/icon.tsx";
import { Link } from "../../parts/router.tsx";
import { glyphOf, StateGlyph, stateWord } from "../../parts/state.tsx";
import { priorityWord, titleOf } from "../../parts/task-text.ts";
import { Span } from "../../parts/time.tsx";
import { useTasks } from "../../parts/use-tasks.ts";
import { useQuery } from "../../queries/use-query.ts";
import { headline, isForWorkers, ordinal, ServerSentence, textOf } from "./reason-text.tsx";

/** How many of the tasks ahead are listed. */
const NAMED_MAX = 3;

/** Why the task waits: the first question of a user who opens it. */
export function WhyBox({ task, explanation }: { readonly task: Task; readonly explanation: Explanation }) {
  const { reasons, position, ahead } = explanation;
  return (
    <section className="why-box" aria-labelledby="why">
      <div className="why-head">
        <div>
          <h2 id="why">Why it waits</h2>
          <p>{headline(reasons, task)}</p>
          {position > 0 && <Strip position={position} />}
        </div>
        {position > 0 && (
          <div className="pos">
            <b>{ordinal(position)}</b>of agent {task.agentId}
          </div>
        )}
      </div>
      <ul className="reasons">
        {reasons.map((reason) => (
          <ReasonItem
            key={`${reason.code} ${reason.taskId ?? ""}`}
            reason={reason}
            task={task}
            ahead={reason.code === "tasks_ahead" ? ahead.slice(0, NAMED_MAX) : []}
            isLaneFull={reasons.some(({ code }) => code === "lane_full")}
          />
        ))}
      </ul>
    </section>
  );
}

/** How many marks fit. Further tasks are shown as a number. */
const MARKS_MAX = 24;

/** The queue of the agent, with this task in it. */
function Strip({ position }: { readonly position: number }) {
  const before = Math.min(position - 1, MARKS_MAX);
  const more = position - 1 - before;
  return (
    <>
      <div className="strip" aria-hidden="true">
        {Array.from({ length: before }, (_, index) => (
          // biome-ignore lint/suspicious/noArrayIndexKey: marks that are all alike.
          <i className="o" key={index} />
        ))}
        <i className="you" />
      </div>
      <div className="strip-key">
        <span>
          {position === 1 ? "None ahead of " : `${position - 1} ahead, then `}
          <b className="fg">this task</b>
          {more > 0 && `; the last ${MARKS_MAX} are drawn`}
        </span>
      </div>
    </>
  );
}

function ReasonItem(props: {
  readonly reason: Reason;
  readonly task: Task;
  readonly ahead: readonly string[];
  /** Over all nodes. */
  readonly isLaneFull: boolean;
}) {
  const { reason, task, ahead, isLaneFull } = props;
  const { may } = useSession();
  const { icon, sentence } = textOf(reason, task);
  return (
    <li>
      <Icon name={icon} />
      <div>
        <b>{sentence ?? <ServerSentence text={asSentence(reason.message)} />}</b>
        {isForWorkers(reason) && may("read") && (
          <p>
            <Link className="link" href={`/workers?agentId=${encodeURIComponent(task.agentId)}`}>
              See its workers
            </Link>
          </p>
        )}
      </div>
      <span className="t">
        {reason.code === "tasks_ahead" ? (
          "by priority, then order"
        ) : (
          <>
            for <Span from={reason.since} />
          </>
        )}
      </span>
      {ahead.length > 0 && <Ahead ids={ahead} />}
      {reason.code === "lane_full" && <Holders title="Held by" name="lane" value={task.lane} />}
      {reason.code === "agent_full" && <Holders title="Held by" name="agentId" value={task.agentId} />}
      {/* Which of them run on this node is not known. */}
      {reason.code === "node_full" && !isLaneFull && (
        <Holders title="Running in the lane" name="lane" value={task.lane} />
      )}
    </li>
  );
}

function Ahead({ ids }: { readonly ids: readonly string[] }) {
  const known = useTasks(ids).filter((each) => each !== undefined);
  return (
    <ul className="holders">
      {known.map((each) => (
        <li key={each.taskId}>
          <StateGlyph state={glyphOf(each)} label={stateWord(each.state)} />
          <Link className="cut link inherit" href={`/tasks/${each.taskId}`}>
            {titleOf(each)}
          </Link>
          <span className="cut muted ag">{priorityWord(each.priority)}</span>
          <span className="num">
            <Span from={each.createdAt} />
          </span>
        </li>
      ))}
    </ul>
  );
}

interface HoldersProps {
  readonly title: string;
  readonly name: "lane" | "agentId";
  readonly value: string;
}

/** The oldest running tasks of the lane or agent, which hold its slots. */
function Holders({ title, name, value }: HoldersProps) {
  const { client } = useSession();
  const filter: TaskFilter = { state: "running", [name]: value, order: "oldest" };
  const { data } = useQuery({
    queryKey: ["holders", name, value],
    queryFn: ({ signal }) => client.tasks.listRows({ ...filter, limit: NAMED_MAX }, { signal }),
    meta: { live: (event) => event[name] === value && event.type !== "task.progress" },
  });
  if (data === undefined || data.count === 0) return null;
  return (
    <div className="held">
      <p className="muted">
        {title}{" "}
        <Link
          className="link"
          href={`/tasks?state=running&${name}=${encodeURIComponent(value)}&order=oldest`}
        >
          (all)
        </Link>
      </p>
      <ul className="holders">
        {data.tasks.map(({ taskId, title: text, state, agentId, createdAt, startedAt }) => (
          <li key={taskId}>
            <StateGlyph state={state} label={stateWord(state)} />
            <Link className="cut link inherit" href={`/tasks/${taskId}`}>
              {text || shortId(taskId)}
            </Link>
            <span className="cut muted ag">{agentId}</span>
            <span className="num">
              <Span from={startedAt ?? createdAt} />
            </span>
          </li>
        ))}
      </ul>
    </div>
  );
}

function asSentence(message: string): string {
  const text = message.charAt(0).toUpperCase() + message.slice(1);
  return /[.!?]$/.test(text) ? text : `${text}.`;
}
