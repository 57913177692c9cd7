import type { Session, SessionMessage } from "../../../../src/client/index.ts";
import { useSession } from "../../api/session.tsx";
import { formFields, inputOf } from "../../forms/form-schema.ts";
import { MoreFields, SchemaFields } from "../../forms/schema-fields.tsx";
import { useSchemas } from "../../forms/use-schemas.ts";
import { Page } from "../../frame/page.tsx";
import { Button } from "../../parts/button.tsx";
import { Field, FormDialog, textOf } from "../../parts/form.tsx";
import { countOf, formatCount, formatShortCount } from "../../parts/format.ts";
import { Empty, Fault, Loading, Stale } from "../../parts/notices.tsx";
import { type Column, Records } from "../../parts/records.tsx";
import { Link, useLocation } from "../../parts/router.tsx";
import { stateWord } from "../../parts/state.tsx";
import { useNew } from "../../parts/use-new.ts";
import { KindFilter, useKind } from "./kind-filter.tsx";
import { activityOf, sessionHref } from "./session-text.ts";
import { useSessions } from "./use-sessions.ts";
import "./sessions.css";

const COLUMNS: readonly Column<Session>[] = [
  {
    head: "Session",
    width: "minmax(12rem, 1fr)",
    phone: "main",
    glyph: (session) => {
      const activity = activityOf(session);
      return activity === undefined ? null : [activity, stateWord(activity)];
    },
    cell: ({ key }) => key,
  },
  { head: "Agent", width: "9rem", phone: "below", cell: ({ agentId }) => agentId },
  { head: "Lane", width: "6rem", className: "sub", from: "wide", cell: ({ lane }) => lane },
  {
    head: "Running",
    width: "4.5rem",
    className: "num",
    cell: ({ running }) => <span className={running === 0 ? "muted" : ""}>{formatCount(running)}</span>,
  },
  {
    head: "Waiting",
    width: "4.5rem",
    className: "num",
    phone: "side",
    cell: ({ queued }) => (
      <span className={queued === 0 ? "muted" : ""}>
        {formatCount(queued)}
        <span className="only-s"> waiting</span>
      </span>
    ),
  },
  {
    head: "Context",
    width: "8rem",
    className: "num sub",
    cell: ({ tokens, contextWindow }) => (
      <>
        {formatShortCount(tokens ?? undefined)}
        {tokens !== null && contextWindow !== null && ` of ${formatShortCount(contextWindow)}`}
      </>
    ),
  },
];

/** All sessions, newest first. */
export default function SessionsPage() {
  const { may } = useSession();
  const kind = useKind();
  const { sessions, kinds, hidden, error, isLoading, hasMore, loadMore, reload } = useSessions(kind);
  const canSay = may("submit");
  const [isNew, setNew] = useNew("/sessions", canSay);
  return (
    <Page
      title="Sessions"
      actions={
        canSay && (
          <Button icon="plus" className="btn-main" onClick={() => setNew(true)}>
            <span>New session</span>
          </Button>
        )
      }
    >
      <div className="bar" role="group" aria-label="Filters">
        <KindFilter kinds={kinds} />
        {hidden > 0 && <span className="muted">{formatCount(hidden)} not shown</span>}
      </div>
      {isLoading ? (
        <Loading what="sessions" />
      ) : error !== null && sessions.length === 0 ? (
        <Fault error={error} what="The sessions" onRetry={reload} />
      ) : sessions.length === 0 ? (
        <Empty
          title={hidden === 0 ? "No sessions yet" : "No session of this kind"}
          action={
            hidden > 0 && (
              <Link className="btn" href="/sessions?kind=all">
                Show all kinds
              </Link>
            )
          }
        >
          {hidden === 0
            ? "A session is a conversation: what is said in it is answered in order. The first message makes it."
            : `${countOf(hidden, "session")} of other kinds ${hidden === 1 ? "is" : "are"} not shown.`}
        </Empty>
      ) : (
        <>
          <Stale error={error} what="The sessions" onRetry={reload} />
          <Records
            label="Sessions"
            columns={COLUMNS}
            rows={sessions}
            keyOf={({ key }) => key}
            href={({ key }) => sessionHref(key, kind)}
          />
        </>
      )}
      {hasMore && (
        <p className="list-end">
          <Button onClick={loadMore}>Older sessions</Button>
        </p>
      )}
      {isNew && <NewSession onClose={() => setNew(false)} />}
    </Page>
  );
}

/** Options of the response, which this page does not wait for. */
const OF_CALLERS: ReadonlySet<string> = new Set(["wait", "cancelOnDisconnect"]);

/** The first message creates the session. Without one, its page opens to write it there. */
function NewSession({ onClose }: { readonly onClose: () => void }) {
  const { client, me } = useSession();
  const [, navigate] = useLocation();
  const schemas = useSchemas();
  const fields = formFields(schemas.data ?? {}, "SessionMessage").filter(({ name }) => !OF_CALLERS.has(name));
  const send = async (data: FormData) => {
    const key = textOf(data, "key") ?? "";
    if (textOf(data, "message") === undefined) return key;
    await client.sessions.send(key, inputOf(fields, data) as unknown as SessionMessage);
    return key;
  };
  const shared = {
    values: me.agentId === undefined ? {} : { agentId: me.agentId },
    fixed: me.agentId === undefined ? [] : ["agentId"],
  };
  return (
    <FormDialog
      title="New session"
      action="Begin"
      send={send}
      onDone={(key) => navigate(sessionHref(key, undefined))}
      onClose={onClose}
    >
      <Field
        name="key"
        label="Key"
        required
        maxLength={256}
        pattern=".*\S.*"
        placeholder="chat:anna"
        isFirst
        hint="A user, a channel or a thread. Before a colon: its kind."
      />
      {schemas.data !== undefined && (
        <>
          <SchemaFields
            {...shared}
            fields={fields.slice(0, 1).map((field) => ({ ...field, isRequired: false }))}
          />
          <MoreFields {...shared} fields={fields.slice(1)} />
        </>
      )}
    </FormDialog>
  );
}
