import { useState } from "react";
import { hasCode } from "../../api/errors.ts";
import { useSession } from "../../api/session.tsx";
import { Page } from "../../frame/page.tsx";
import { Button } from "../../parts/button.tsx";
import { formatCount } from "../../parts/format.ts";
import { Icon } from "../../parts/icon.tsx";
import { Empty, Fault, Loading } from "../../parts/notices.tsx";
import { Link, useSearchParams } from "../../parts/router.tsx";
import { StateGlyph, stateWord } from "../../parts/state.tsx";
import { isWaiting } from "../../parts/task-text.ts";
import { useQuery } from "../../queries/use-query.ts";
import { Dock } from "./dock.tsx";
import { KindFilter, useKind } from "./kind-filter.tsx";
import { SessionActions } from "./session-actions.tsx";
import { SessionFacts } from "./session-facts.tsx";
import { activityOf, sessionHref } from "./session-text.ts";
import { Talk } from "./transcript.tsx";
import { useSessions } from "./use-sessions.ts";
import { useTranscript } from "./use-transcript.ts";
import "./sessions.css";
import { SettingsDialog } from "./settings-dialog.tsx";

/** One session: its messages, the running one and the waiting ones. */
export default function SessionPage() {
  const [params] = useSearchParams();
  const key = params.get("key") ?? "";
  if (key !== "") return <OneSession key={key} sessionKey={key} />;
  return (
    <Page title="Session">
      <Empty
        title="Which session?"
        action={
          <Link className="btn" href="/sessions">
            All sessions
          </Link>
        }
      >
        The address names none.
      </Empty>
    </Page>
  );
}

function OneSession({ sessionKey }: { readonly sessionKey: string }) {
  const { client, may } = useSession();
  const [isEditing, setEditing] = useState(false);
  const { data, error, refetch } = useQuery({
    queryKey: ["session", sessionKey],
    queryFn: ({ signal }) => client.sessions.get(sessionKey, { signal }),
    meta: { live: (event) => event.sessionKey === sessionKey && event.type !== "task.progress" },
  });
  const edit = may("operate") ? () => setEditing(true) : undefined;
  const transcript = useTranscript(sessionKey);
  // A session is created by its first message, so `not_found` is no error.
  const fault = transcript.error ?? (data !== undefined || hasCode(error, "not_found") ? null : error);
  return (
    <Page
      title={sessionKey}
      crumb={
        <>
          <span className="back hide-s">
            <Link href="/sessions">Sessions</Link>
            <Icon name="right" size={12} />
          </span>
          <h1 className="cut">{sessionKey}</h1>
        </>
      }
      actions={data !== undefined && <SessionActions session={data} onEdit={edit} />}
    >
      <div className="sess">
        <SessionColumn current={sessionKey} />
        {fault !== null ? (
          <Fault
            error={fault}
            what="The session"
            onRetry={() => {
              void refetch();
              transcript.reload();
            }}
          />
        ) : transcript.isLoading ? (
          <Loading what="the session" />
        ) : (
          <Talk sessionKey={sessionKey} transcript={transcript}>
            <Dock sessionKey={sessionKey} session={data} waiting={transcript.tasks.filter(isWaiting)} />
          </Talk>
        )}
        <aside className="sess-rail rail" tabIndex={0} aria-label="Session details">
          {data !== undefined && <SessionFacts session={data} onEdit={edit} />}
        </aside>
      </div>
      {isEditing && data !== undefined && <SettingsDialog session={data} onClose={() => setEditing(false)} />}
    </Page>
  );
}

/** The other sessions, beside the open one. */
function SessionColumn({ current }: { readonly current: string }) {
  const kind = useKind();
  const { sessions, kinds, hasMore, loadMore } = useSessions(kind);
  return (
    <nav className="sess-list" tabIndex={0} aria-label="Sessions">
      <div className="bar">
        <KindFilter kinds={kinds} />
      </div>
      {sessions.map((session) => {
        const { key, agentId, queued, running } = session;
        const activity = activityOf(session);
        return (
          <Link key={key} href={sessionHref(key, kind)} aria-current={key === current ? "page" : undefined}>
            {activity === undefined ? <span /> : <StateGlyph state={activity} label={stateWord(activity)} />}
            <b className="cut">{key}</b>
            <small className="cut">
              {agentId}
              {queued > 0 && `, ${formatCount(queued)} ${running > 0 ? "behind" : "waiting"}`}
            </small>
          </Link>
        );
      })}
      {hasMore && (
        <Button className="btn-quiet" onClick={loadMore}>
          Older sessions
        </Button>
      )}
    </nav>
  );
}
