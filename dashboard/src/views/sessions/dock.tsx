import { type FormEvent, type KeyboardEvent, useId, useRef, useState } from "react";
import type { Session, SessionAnswer, SessionMode, Task } from "../../../../src/client/index.ts";
import { sentenceOf } from "../../api/errors.ts";
import { useSession } from "../../api/session.tsx";
import { Button, IconButton } from "../../parts/button.tsx";
import { formatCount, formatOrdinal } from "../../parts/format.ts";
import { Icon } from "../../parts/icon.tsx";
import { Link } from "../../parts/router.tsx";
import { titleOf } from "../../parts/task-text.ts";
import { Moment } from "../../parts/time.tsx";
import { useToast } from "../../parts/toast.tsx";
import { useMutation } from "../../queries/use-mutation.ts";
import { stoppedText } from "./session-actions.tsx";

/** How many of the waiting messages are listed. */
const NAMED_MAX = 5;

interface DockProps {
  readonly sessionKey: string;
  /** Undefined: it has no messages yet. */
  readonly session: Session | undefined;
  readonly waiting: readonly Task[];
}

/** The waiting messages, and the field for a new one. */
export function Dock({ sessionKey, session, waiting }: DockProps) {
  const { may } = useSession();
  return (
    <div className="dock">
      <div className="dock-in">
        {session !== undefined && waiting.length > 0 && <Behind session={session} waiting={waiting} />}
        {may("submit") && <Composer sessionKey={sessionKey} session={session} />}
      </div>
    </div>
  );
}

function Behind({ session, waiting }: { readonly session: Session; readonly waiting: readonly Task[] }) {
  const { client, may } = useSession();
  const toast = useToast();
  const { mutate } = useMutation({
    mutationFn: (taskId: string) => client.tasks.cancel(taskId),
    onError: (error) => toast(sentenceOf(error)),
  });
  const { key, running, effectiveMaxConcurrent: atOnce, cap } = session;
  const search = new URLSearchParams({ state: "queued,delayed,waiting_dependency", sessionKey: key });
  return (
    <section className="behind" aria-label="Waiting">
      <h2>
        {formatCount(waiting.length)} {running > 0 ? "behind it" : "waiting"}
        <span className="muted">
          {atOnce === 1 ? "one at a time" : `${formatCount(atOnce)} at a time`}, at most {formatCount(cap)}
        </span>
      </h2>
      <ol>
        {waiting.slice(0, NAMED_MAX).map((task, index) => (
          <li key={task.taskId}>
            <span className="ord">{index + 1}</span>
            <Link className="cut" href={`/tasks/${task.taskId}`}>
              {titleOf(task)}
            </Link>
            <Moment className="muted" at={task.createdAt} />
            {may("submit") && (
              <IconButton
                icon="x"
                size={12}
                label={`Cancel message ${index + 1}`}
                onClick={() => mutate(task.taskId)}
              />
            )}
          </li>
        ))}
      </ol>
      {waiting.length > NAMED_MAX && (
        <Link className="link" href={`/tasks?${search}`}>
          All that wait
        </Link>
      )}
    </section>
  );
}

function Composer({ sessionKey, session }: Omit<DockProps, "waiting">) {
  const { client, me } = useSession();
  const toast = useToast();
  const [text, setText] = useState("");
  const [chosen, setMode] = useState<SessionMode>();
  const form = useRef<HTMLFormElement>(null);
  const faultId = useId();
  // `followup` means the same as `queue`.
  const mode = chosen ?? (session?.mode === "interrupt" ? "interrupt" : "queue");
  const { mutate, isPending, error } = useMutation({
    mutationFn: (message: string) =>
      client.sessions.send(sessionKey, {
        message,
        mode,
        ...(me.agentId === undefined ? {} : { agentId: me.agentId }),
      }),
    onSuccess: (answer: SessionAnswer) => {
      setText("");
      setMode(undefined);
      if (answer.stopped !== undefined) toast(stoppedText(answer));
      else if (answer.warnings?.[0] !== undefined) toast(answer.warnings[0]);
    },
  });
  const send = (event: FormEvent) => {
    event.preventDefault();
    if (text.trim() !== "" && !isPending) mutate(text);
  };
  const onKeyDown = (event: KeyboardEvent) => {
    if (event.key !== "Enter" || event.shiftKey || event.nativeEvent.isComposing) return;
    event.preventDefault();
    form.current?.requestSubmit();
  };
  const ahead = (session?.running ?? 0) + (session?.queued ?? 0);
  return (
    <form className="composer" ref={form} onSubmit={send}>
      <textarea
        aria-label="Message"
        placeholder={`Say something to ${me.agentId ?? session?.agentId ?? "index"}, or /stop`}
        value={text}
        aria-invalid={error !== null}
        aria-describedby={error === null ? undefined : faultId}
        onChange={(event) => setText(event.target.value)}
        onKeyDown={onKeyDown}
      />
      {error !== null && (
        <p className="err" id={faultId} role="alert">
          <Icon name="alert" size={14} />
          {sentenceOf(error)}
        </p>
      )}
      <div className="composer-foot">
        <fieldset className="seg">
          <legend className="vh">Mode</legend>
          {(["queue", "interrupt"] as const).map((each) => (
            <label key={each}>
              <input
                type="radio"
                name="mode"
                value={each}
                checked={mode === each}
                onChange={() => setMode(each)}
              />
              {each === "queue" ? "Queue" : "Interrupt"}
            </label>
          ))}
        </fieldset>
        <span className="hint">
          {mode === "interrupt"
            ? ahead > 0 && "Ends what runs and waits"
            : ahead > 0 && `Runs ${formatOrdinal(ahead + 1)}`}
        </span>
        <span className="grow" />
        <Button icon="send" type="submit" className="btn-main" aria-label="Send" disabled={isPending}>
          <span className="hide-s">Send</span>
        </Button>
      </div>
    </form>
  );
}
