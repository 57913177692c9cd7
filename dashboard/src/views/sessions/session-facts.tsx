import type { CSSProperties, ReactNode } from "react";
import type { Session } from "../../../../src/client/index.ts";
import { formatCount, sayDuration } from "../../parts/format.ts";
import { Link } from "../../parts/router.tsx";

/** From this percentage of its context window on, a session runs one task at a time. */
const THROTTLE_PERCENT = 60;

interface SessionFactsProps {
  readonly session: Session;
  /** Undefined: the user may not. */
  readonly onEdit: (() => void) | undefined;
}

/** The state and the settings of a session. */
export function SessionFacts({ session, onEdit }: SessionFactsProps) {
  const { agentId, lane, running, queued, effectiveMaxConcurrent, cap } = session;
  const { mode, maxConcurrent, drop, debounceMs, generation } = session;
  return (
    <>
      <Context session={session} />
      <section className="cell">
        <div className="cell-head">
          <h2>Now</h2>
        </div>
        <dl className="props">
          <dt>Agent</dt>
          <dd>
            <TasksLink name="agentId" value={agentId} />
          </dd>
          <dt>Lane</dt>
          <dd>
            <TasksLink name="lane" value={lane} />
          </dd>
          <dt>Running</dt>
          <dd>
            {formatCount(running)} of {formatCount(effectiveMaxConcurrent)}
          </dd>
          <dt>Waiting</dt>
          <dd>
            {formatCount(queued)} of {formatCount(cap)}
          </dd>
        </dl>
      </section>
      <section className="cell">
        <div className="cell-head">
          <h2>Settings</h2>
          {onEdit !== undefined && (
            <button type="button" className="more" onClick={onEdit}>
              Edit
            </button>
          )}
        </div>
        <dl className="props">
          <dt>Mode</dt>
          <dd>{mode}</dd>
          <dt>At once</dt>
          <dd>{formatCount(maxConcurrent)}</dd>
          <dt>When full</dt>
          <dd>{drop === "old" ? "drop the oldest" : "refuse new ones"}</dd>
          <dt>Join within</dt>
          <dd>{debounceMs === 0 ? "off" : sayDuration(debounceMs)}</dd>
          <dt>Resets</dt>
          <dd>{formatCount(generation)}</dd>
        </dl>
      </section>
    </>
  );
}

function Context({ session }: { readonly session: Session }) {
  const { tokens, contextWindow, maxConcurrent } = session;
  return (
    <section className="cell">
      <div className="cell-head">
        <h2>Context</h2>
      </div>
      {tokens === null ? (
        <p className="muted">Its agent has not reported how full it is.</p>
      ) : (
        <>
          <div>
            <b className="ctx-used">{formatCount(tokens)}</b>{" "}
            <span className="sub">
              {contextWindow === null
                ? "tokens; how many fit is not known"
                : `of ${formatCount(contextWindow)} tokens, ${Math.round((100 * tokens) / contextWindow)} %`}
            </span>
          </div>
          {contextWindow !== null && (
            <Gauge tokens={tokens} contextWindow={contextWindow} hasMark={maxConcurrent > 1} />
          )}
          {contextWindow !== null && maxConcurrent > 1 && (
            <p className="muted">Above {THROTTLE_PERCENT} % of the context, one message runs at a time.</p>
          )}
        </>
      )}
    </section>
  );
}

interface GaugeProps {
  readonly tokens: number;
  readonly contextWindow: number;
  /** Whether anything changes at the percentage: a session that runs one message at a time goes on doing so. */
  readonly hasMark: boolean;
}

function Gauge({ tokens, contextWindow, hasMark }: GaugeProps) {
  const percent = Math.min(100, (100 * tokens) / contextWindow);
  const style = { "--p": `${percent}%`, "--at": `${THROTTLE_PERCENT}%` } as CSSProperties;
  return (
    <div
      className={`ctx ${hasMark ? "ctx-mark" : ""} ${hasMark && percent >= THROTTLE_PERCENT ? "hot" : ""}`}
      style={style}
      role="meter"
      aria-label="Context used"
      aria-valuemin={0}
      aria-valuemax={contextWindow}
      aria-valuenow={Math.min(tokens, contextWindow)}
    >
      <i />
      {hasMark && (
        <>
          <span className="at" />
          <span className="lb">{THROTTLE_PERCENT} %</span>
        </>
      )}
    </div>
  );
}

function TasksLink({ name, value }: { readonly name: string; readonly value: string }): ReactNode {
  return (
    <Link className="link" href={`/tasks?${name}=${encodeURIComponent(value)}`}>
      {value}
    </Link>
  );
}
