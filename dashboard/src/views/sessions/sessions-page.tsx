import { type FormEvent, useId, useState } from "react";
import { Link, useLocation } from "wouter";
import type { Session } from "../../../../src/client/index.ts";
import { useSession } from "../../api/session.tsx";
import { Page } from "../../frame/page.tsx";
import { useKeys } from "../../keys/use-keys.ts";
import { Dialog } from "../../parts/dialog.tsx";
import { countOf, formatCount, formatShortCount } from "../../parts/format.ts";
import { Icon } from "../../parts/icon.tsx";
import { Empty, Fault, Loading } from "../../parts/notices.tsx";
import { StateGlyph, stateWord } from "../../parts/state.tsx";
import { KindFilter, useKind } from "./kind-filter.tsx";
import { activityOf, sessionHref } from "./session-text.ts";
import { useSessions } from "./use-sessions.ts";
import "./sessions.css";

/** All sessions, newest first. */
export default function SessionsPage() {
  const { may } = useSession();
  const [, navigate] = useLocation();
  const kind = useKind();
  const { sessions, kinds, hidden, error, isLoading, hasMore, loadMore, reload } = useSessions(kind);
  const [isNew, setNew] = useState(false);
  const [cursor, setCursor] = useState<number>();
  const canSay = may("submit");
  const move = (step: number) => {
    const next = Math.min(sessions.length - 1, Math.max(0, cursor === undefined ? 0 : cursor + step));
    setCursor(next);
    document.querySelector(`.lrow[aria-rowindex="${next + 2}"]`)?.scrollIntoView({ block: "nearest" });
  };
  const current = cursor === undefined ? undefined : sessions[cursor];
  useKeys({
    j: () => move(1),
    k: () => move(-1),
    ...(current === undefined ? {} : { enter: () => navigate(sessionHref(current.key, kind)) }),
    ...(canSay ? { n: () => setNew(true) } : {}),
  });
  return (
    <Page
      title="Sessions"
      actions={
        canSay && (
          <button type="button" className="btn btn-main" onClick={() => setNew(true)}>
            <Icon name="plus" />
            <span>New session</span>
          </button>
        )
      }
    >
      <div className="bar" role="group" aria-label="Filters">
        <KindFilter kinds={kinds} />
        {hidden > 0 && <span className="muted">{formatCount(hidden)} not shown</span>}
      </div>
      {isLoading ? (
        <Loading what="sessions" />
      ) : error !== null ? (
        <Fault error={error} what="The sessions" onRetry={reload} />
      ) : sessions.length === 0 ? (
        <Empty title={hidden === 0 ? "No sessions yet" : "No session of this kind"}>
          {hidden === 0
            ? "A session is a conversation: what is said in it is answered in order. The first message makes it."
            : `${countOf(hidden, "session")} of other kinds ${hidden === 1 ? "is" : "are"} not shown.`}
        </Empty>
      ) : (
        <div
          className="list cols-sess"
          role="table"
          aria-label="Sessions"
          aria-rowcount={hasMore ? -1 : sessions.length + 1}
        >
          <Head />
          <div role="rowgroup">
            {sessions.map((session, index) => (
              <Row
                key={session.key}
                session={session}
                index={index}
                href={sessionHref(session.key, kind)}
                isCursor={index === cursor}
              />
            ))}
          </div>
        </div>
      )}
      {hasMore && (
        <p className="list-end">
          <button type="button" className="btn" onClick={loadMore}>
            Older sessions
          </button>
        </p>
      )}
      {isNew && <NewSession onClose={() => setNew(false)} />}
    </Page>
  );
}

function Head() {
  return (
    <div className="lhead" role="row">
      <span role="columnheader">
        <span className="vh">State</span>
      </span>
      <span role="columnheader">Session</span>
      <span role="columnheader">Agent</span>
      <span role="columnheader" className="c-lane">
        Lane
      </span>
      <span role="columnheader" className="num">
        Running
      </span>
      <span role="columnheader" className="num">
        Waiting
      </span>
      <span role="columnheader" className="num c-tok">
        Context
      </span>
    </div>
  );
}

interface RowProps {
  readonly session: Session;
  readonly index: number;
  readonly href: string;
  readonly isCursor: boolean;
}

function Row({ session, index, href, isCursor }: RowProps) {
  const { key, agentId, lane, running, queued, tokens, contextWindow } = session;
  const activity = activityOf(session);
  return (
    <div className="lrow" role="row" aria-rowindex={index + 2} data-cursor={isCursor ? "" : undefined}>
      <span role="cell" className="no-cut">
        {activity === undefined ? (
          <span className="vh">Idle</span>
        ) : (
          <StateGlyph state={activity} label={stateWord(activity)} />
        )}
      </span>
      <span role="cell" className="c-title">
        <Link className="main-link name" href={href}>
          {key}
        </Link>
      </span>
      <span role="cell" className="c-agent" title={agentId}>
        {agentId}
      </span>
      <span role="cell" className="c-lane sub">
        {lane}
      </span>
      <span role="cell" className="num c-run">
        {running === 0 ? "–" : formatCount(running)}
      </span>
      <span role="cell" className="num c-wait">
        {queued === 0 ? "–" : formatCount(queued)}
        {queued > 0 && <span className="only-s"> waiting</span>}
      </span>
      <span role="cell" className="num c-tok sub">
        {tokens === null ? "–" : formatShortCount(tokens)}
        {tokens !== null && contextWindow !== null && ` of ${formatShortCount(contextWindow)}`}
      </span>
    </div>
  );
}

/** Asks only for a key: the first message creates the session. */
function NewSession({ onClose }: { readonly onClose: () => void }) {
  const [, navigate] = useLocation();
  const formId = useId();
  const submit = (event: FormEvent<HTMLFormElement>) => {
    event.preventDefault();
    const key = String(new FormData(event.currentTarget).get("key")).trim();
    onClose();
    navigate(sessionHref(key, undefined));
  };
  return (
    <Dialog
      title="New session"
      onClose={onClose}
      size="small"
      footer={
        <>
          <span className="grow" />
          <button type="submit" form={formId} className="btn btn-main">
            Begin
          </button>
        </>
      }
    >
      <form id={formId} className="dialog-form" onSubmit={submit}>
        <div className="field">
          <label htmlFor={`${formId}-key`}>Key</label>
          <input
            className="input"
            id={`${formId}-key`}
            name="key"
            required
            maxLength={256}
            pattern=".*\S.*"
            placeholder="chat:anna"
            spellCheck={false}
            data-focus
          />
          <span className="hint">A user, a channel or a thread. Before a colon: its kind.</span>
        </div>
      </form>
    </Dialog>
  );
}
