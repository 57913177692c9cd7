import type { ReactNode } from "react";
import type { Task } from "../../../../src/client/index.ts";
import { formatCount, sayDuration, shortId } from "../../parts/format.ts";
import { Link } from "../../parts/router.tsx";
import { priorityWord } from "../../parts/task-text.ts";
import { Moment } from "../../parts/time.tsx";
import { TasksLink } from "./reason-text.tsx";

/** The fields of a task besides its work: at the side, or below on a phone. */
export function Details({ task }: { readonly task: Task }) {
  const { priority, kind, timeout, deadline, runAt, retryPolicy, preemptible, concurrencyKey, usage } = task;
  const nodes = [...new Set((task.attempts ?? []).map(({ node }) => node))];
  return (
    <aside className="rail" aria-label="Details">
      <Group title="Details">
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
        <Fact name="Ran on">{nodes.length > 0 && nodes.join(", ")}</Fact>
      </Group>
      {usage !== undefined && (
        <Group title="Cost">
          <Fact name="Tokens in">{formatCount(usage.inputTokens)}</Fact>
          <Fact name="Tokens out">{formatCount(usage.outputTokens)}</Fact>
          <Fact name="Context">{usage.contextWindow !== undefined && formatCount(usage.contextWindow)}</Fact>
        </Group>
      )}
      <ComesFrom task={task} />
    </aside>
  );
}

function ComesFrom({ task }: { readonly task: Task }) {
  const { batchId, key, sessionKey, scheduleId, callbackUrl, conversationId, dependsOn } = task;
  const all = [batchId, sessionKey, scheduleId, callbackUrl, conversationId, dependsOn];
  if (all.every((each) => each === undefined)) return null;
  return (
    <Group title="Comes from">
      <Fact name="Batch">
        {batchId !== undefined && (
          <Link className="link" href={`/batches/${batchId}`}>
            {shortId(batchId)}
          </Link>
        )}
        {key !== undefined && batchId !== undefined && `, as ${key}`}
      </Fact>
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
    </Group>
  );
}

function Group({ title, children }: { readonly title: string; readonly children: ReactNode }) {
  return (
    <section className="cell">
      <div className="cell-head">
        <h2>{title}</h2>
      </div>
      <dl className="props">{children}</dl>
    </section>
  );
}

/** Renders nothing if the field is not set. */
function Fact({ name, children }: { readonly name: string; readonly children: ReactNode }) {
  const parts = Array.isArray(children) ? children : [children];
  if (parts.every((part) => part === false || part === undefined)) return null;
  return (
    <>
      <dt>{name}</dt>
      <dd>{children}</dd>
    </>
  );
}

function retryText({ maxRetries, backoffMs, backoffMultiplier }: Task["retryPolicy"]): string {
  if (maxRetries === 0) return "none";
  const times = maxRetries === 1 ? "once" : `${maxRetries} times`;
  return `${times}, ${sayDuration(backoffMs)} × ${backoffMultiplier}`;
}
