import type { Task } from "../../../../src/client/index.ts";
import { useSession } from "../../api/session.tsx";
import { Fact, Facts } from "../../parts/facts.tsx";
import { formatCount, sayDuration, shortId } from "../../parts/format.ts";
import { MadeBy } from "../../parts/made-by.tsx";
import { Link } from "../../parts/router.tsx";
import { priorityWord } from "../../parts/task-text.ts";
import { Moment } from "../../parts/time.tsx";
import { isWorkerId } from "../workers/worker-text.ts";
import { TasksLink } from "./reason-text.tsx";

/** The fields of a task besides its work: at the side, or below on a phone. */
export function Details({ task }: { readonly task: Task }) {
  const { priority, kind, timeout, deadline, runAt, retryPolicy, preemptible, concurrencyKey, usage } = task;
  const nodes = [...new Set((task.attempts ?? []).map(({ node }) => node))];
  return (
    <aside className="rail" aria-label="Details">
      <Facts title="Details">
        <Fact name="Priority">{priorityWord(priority)}</Fact>
        <Fact name="Kind">{kind}</Fact>
        <Fact name="Time limit">{timeout !== undefined && `${sayDuration(timeout)} per attempt`}</Fact>
        <Fact name="Retry">{retryText(retryPolicy)}</Fact>
        <Fact name="Deadline">{deadline !== undefined && <Moment at={deadline} />}</Fact>
        <Fact name="Not before">{runAt !== undefined && task.retryCount === 0 && <Moment at={runAt} />}</Fact>
        <Fact name="Preemptible">{preemptible === true && "yes"}</Fact>
        <Fact name="Runs alone by">
          {concurrencyKey !== undefined && <span className="mono">{concurrencyKey}</span>}
        </Fact>
        <Fact name="Ran on">{nodes.length > 0 && nodes.map((node) => <Holder key={node} id={node} />)}</Fact>
      </Facts>
      {usage !== undefined && (
        <Facts title="Cost">
          <Fact name="Tokens in">{formatCount(usage.inputTokens)}</Fact>
          <Fact name="Tokens out">{formatCount(usage.outputTokens)}</Fact>
          <Fact name="Context">{usage.contextWindow !== undefined && formatCount(usage.contextWindow)}</Fact>
        </Facts>
      )}
      <ComesFrom task={task} />
    </aside>
  );
}

/** A node, or a worker with a link to it. */
function Holder({ id }: { readonly id: string }) {
  const { may } = useSession();
  if (!isWorkerId(id) || !may("read"))
    return (
      <div className="cut" title={id}>
        {id}
      </div>
    );
  return (
    <div>
      <Link className="link mono" href={`/workers/${id}`}>
        {shortId(id)}
      </Link>
    </div>
  );
}

function TaskLink({ id }: { readonly id: string }) {
  return (
    <Link className="link mono" href={`/tasks/${id}`}>
      {shortId(id)}
    </Link>
  );
}

function ComesFrom({ task }: { readonly task: Task }) {
  const { batchId, key, sessionKey, scheduleId, callbackUrl, conversationId, dependsOn } = task;
  const { createdBy, parentTaskId, rootTaskId } = task;
  const all = [batchId, sessionKey, scheduleId, callbackUrl, conversationId, dependsOn, createdBy];
  if (all.every((each) => each === undefined)) return null;
  return (
    <Facts title="Comes from">
      <Fact name="Created">{createdBy !== undefined && <MadeBy maker={createdBy} />}</Fact>
      <Fact name="Within">{parentTaskId !== undefined && <TaskLink id={parentTaskId} />}</Fact>
      <Fact name="Root">
        {rootTaskId !== undefined && rootTaskId !== parentTaskId && <TaskLink id={rootTaskId} />}
      </Fact>
      <Fact name="Batch">
        {batchId !== undefined && (
          <Link className="link" href={`/batches/${batchId}`}>
            {shortId(batchId)}
          </Link>
        )}
      </Fact>
      <Fact name="Key">{batchId !== undefined && key}</Fact>
      <Fact name="Session">
        {sessionKey !== undefined && (
          <Link className="link" href={`/session?key=${encodeURIComponent(sessionKey)}`}>
            {sessionKey}
          </Link>
        )}
      </Fact>
      <Fact name="Schedule">
        {scheduleId !== undefined && <TasksLink name="scheduleId" value={scheduleId} />}
      </Fact>
      <Fact name="Conversation">
        {conversationId !== undefined && <span className="mono">{conversationId}</span>}
      </Fact>
      <Fact name="Webhook">{callbackUrl !== undefined && (URL.parse(callbackUrl)?.host ?? callbackUrl)}</Fact>
    </Facts>
  );
}

function retryText({ maxRetries, backoffMs, backoffMultiplier }: Task["retryPolicy"]): string {
  if (maxRetries === 0) return "none";
  const times = maxRetries === 1 ? "once" : `${maxRetries} times`;
  return `${times}, ${sayDuration(backoffMs)} × ${backoffMultiplier}`;
}
