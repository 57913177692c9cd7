import type { ReactNode } from "react";
import type { Reason, Task } from "../../../../src/client/index.ts";
import { formatCount, formatOrdinal, shortId } from "../../parts/format.ts";
import type { IconName } from "../../parts/icon.tsx";
import { Link } from "../../parts/router.tsx";
import { titleOf } from "../../parts/task-text.ts";
import { Relative } from "../../parts/time.tsx";
import { useTasks } from "../../parts/use-tasks.ts";

interface ReasonText {
  readonly icon: IconName;
  /** A few words, for the headline. */
  readonly short: string;
  /** A sentence with links to what holds the task. Undefined: the server's own sentence is shown. */
  readonly sentence?: ReactNode;
}

/** The text of a reason code. For an unknown code it is the server's own sentence. */
export function textOf(reason: Reason, task: Task): ReasonText {
  const { agentId, lane } = task;
  const agent = <TasksLink name="agentId" value={agentId} />;
  const laneLink = <TasksLink name="lane" value={lane} />;
  switch (reason.code) {
    case "running":
      return { icon: "play", short: "It runs" };
    case "assigned":
      return { icon: "play", short: "It begins next" };
    case "waiting_for_task":
      return {
        icon: "link",
        short: "it waits for another task",
        sentence: <>It starts once {taskLink(reason)} is done.</>,
      };
    case "unknown_task":
      return {
        icon: "alert",
        short: "it waits for a task that is not known",
        sentence: <>It waits for {taskLink(reason)}, which is not known: cancel it, or submit it again.</>,
      };
    case "not_before":
      return {
        icon: "clock",
        short: "it is not due yet",
        sentence: <>It is due {until(reason)}.</>,
      };
    case "retry_wait":
      return {
        icon: "retry",
        short: "it waits for its next attempt",
        sentence: <>Its next attempt is {until(reason)}.</>,
      };
    case "scheduler_disabled":
      return { icon: "pause", short: "the scheduler is disabled" };
    case "not_started":
      return { icon: "pause", short: "this node has not been started" };
    case "draining":
      return { icon: "stop", short: "this node is stopping" };
    case "tenant_disabled":
      return { icon: "lock", short: "its tenant is disabled" };
    case "tenant_full":
      return { icon: "gates", short: "its tenant is at its limit" };
    case "tenant_at_lane_share":
      return { icon: "gates", short: `its tenant holds its share of lane ${lane}` };
    case "no_executor":
      return {
        icon: "workers",
        short: `no ${isForWorkers(reason) ? "worker runs" : "node can execute"} agent ${agentId}`,
        ...(reason.until === undefined
          ? {}
          : {
              sentence: (
                <>
                  No node or worker runs agent {agent}: it fails {until(reason)} unless one starts.
                </>
              ),
            }),
      };
    case "preempted":
      return { icon: "arrow", short: "it gave way to a critical task" };
    case "batch_full":
      return { icon: "tasks", short: "its batch is at its limit" };
    case "session_busy":
      return { icon: "sessions", short: "its session is busy" };
    case "taken":
      return {
        icon: "sessions",
        short: "a running task has taken it",
        sentence: <>{taskLink(reason)} has taken this message while it ran: it ends with that task.</>,
      };
    case "concurrency_key":
      return {
        icon: "key",
        short: "its concurrency key is taken",
        sentence: <>Its concurrency key is held by {taskLink(reason)}.</>,
      };
    case "lane_not_served":
      return { icon: "lanes", short: `this node does not serve lane ${lane}` };
    case "lane_full":
      return { icon: "lanes", short: `lane ${lane} is full` };
    case "node_full":
      return { icon: "workers", short: `this node has no free slot in lane ${lane}` };
    case "workers_busy":
      return { icon: "workers", short: `no worker for agent ${agentId} has a free slot` };
    case "node_memory":
      return { icon: "workers", short: "the running tasks of this node have reached its memory limit" };
    case "node_runs_alone":
      return { icon: "workers", short: "this node runs another task alone" };
    case "runs_alone":
      return { icon: "workers", short: "it runs alone, once nothing else runs" };
    case "agent_full":
      return { icon: "agents", short: `agent ${agentId} is at its limit` };
    case "tasks_ahead":
      return { icon: "queue", short: `other tasks of agent ${agentId} go first` };
    case "others_first":
      return {
        icon: "queue",
        short: "its turn comes next",
        sentence: (
          <>
            Nothing holds it: it is next of agent {agent} in lane {laneLink}, or other agents go first.
          </>
        ),
      };
    default:
      return { icon: "info", short: reason.message };
  }
}

/** Whether workers would run the task, by the sentence of the server. */
export function isForWorkers({ code, message }: Reason): boolean {
  return code === "workers_busy" || (code === "no_executor" && message.startsWith("no worker"));
}

/** The first reasons as one sentence: "Lane tasks is full, and agent research is at its limit." */
export function headline(reasons: readonly Reason[], task: Task): string {
  const others = reasons.filter(({ code }) => code === "waiting_for_task").length;
  const shorts = reasons.map((reason) =>
    reason.code === "waiting_for_task" && others > 1
      ? `it waits for ${formatCount(others)} other tasks`
      : textOf(reason, task).short,
  );
  const text = [...new Set(shorts)].slice(0, 2).join(", and ");
  return text === "" ? "Nothing holds it." : `${text.charAt(0).toUpperCase()}${text.slice(1)}.`;
}

/** "4th". */
export function ordinal(position: number): string {
  return formatOrdinal(position);
}

function taskLink({ taskId = "" }: Reason): ReactNode {
  return <NamedTask id={taskId} />;
}

/** A link to a task, by its title once that is known. */
function NamedTask({ id }: { readonly id: string }) {
  const [task] = useTasks([id]);
  return (
    <Link className={task === undefined ? "link mono" : "link"} href={`/tasks/${id}`} title={id}>
      {task === undefined ? shortId(id) : titleOf(task)}
    </Link>
  );
}

function until({ until: at }: Reason): ReactNode {
  return at === undefined ? "soon" : <Relative at={at} />;
}

/** A sentence of the server, in which lanes and agents link to their tasks. */
export function ServerSentence({ text }: { readonly text: string }) {
  return text.split(/((?:lane|agent) "[^"]+")/i).map((part) => {
    const [, noun = "", name = ""] = /^(lane|agent) "([^"]+)"$/i.exec(part) ?? [];
    if (name === "") return part;
    return (
      <span key={part}>
        {noun} <TasksLink name={noun.toLowerCase() === "lane" ? "lane" : "agentId"} value={name} />
      </span>
    );
  });
}

/** A name that links to all tasks with it. */
export function TasksLink({ name, value }: { readonly name: string; readonly value: string | number }) {
  return (
    <Link className="link" href={`/tasks?${name}=${encodeURIComponent(value)}`}>
      {value}
    </Link>
  );
}
