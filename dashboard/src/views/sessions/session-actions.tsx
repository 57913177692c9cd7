import { useId, useState } from "react";
import type { Session, StoppedTasks } from "../../../../src/client/index.ts";
import { useSession } from "../../api/session.tsx";
import { Button } from "../../parts/button.tsx";
import { Confirm, ConfirmByName, Dialog } from "../../parts/dialog.tsx";
import { countOf } from "../../parts/format.ts";
import { Icon } from "../../parts/icon.tsx";
import { useAction } from "../../parts/use-action.ts";
import { SessionFacts } from "./session-facts.tsx";

type Asked = "stopAll" | "reset" | "details";

interface SessionActionsProps {
  readonly session: Session;
  /** Undefined: the user may not change it. */
  readonly onEdit: (() => void) | undefined;
}

/** The actions on a session, in the top bar. */
export function SessionActions({ session, onEdit }: SessionActionsProps) {
  const { client } = useSession();
  const menuId = useId();
  const [asked, setAsked] = useState<Asked>();
  const { key, running, queued } = session;
  const { mutate, isPending } = useAction(
    (what: "stop" | "stopAll" | "reset") => client.sessions[what](key),
    { said: (stopped, what) => (what === "reset" ? "The session begins anew" : stoppedText(stopped)) },
  );
  const close = () => setAsked(undefined);
  const canOperate = onEdit !== undefined;
  const hasWork = running + queued > 0;
  const item = (label: string, onClick: () => void, className = "") => (
    <button
      type="button"
      className={`btn btn-quiet ${className}`}
      popoverTarget={menuId}
      popoverTargetAction="hide"
      onClick={onClick}
    >
      {label}
    </button>
  );
  return (
    <>
      {canOperate && hasWork && (
        <Button icon="stop" aria-label="Stop" disabled={isPending} onClick={() => mutate("stop")}>
          <span className="hide-s">Stop</span>
        </Button>
      )}
      <button
        type="button"
        className={`btn-icon ${canOperate ? "" : "only-narrow"}`}
        aria-label="More"
        popoverTarget={menuId}
      >
        <Icon name="more" />
      </button>
      <div className="menu sess-menu" id={menuId} popover="auto">
        {item("Details", () => setAsked("details"), "only-narrow")}
        {canOperate && hasWork && item("Stop all", () => setAsked("stopAll"))}
        {onEdit !== undefined && item("Settings", onEdit)}
        {canOperate && item("Reset", () => setAsked("reset"), "btn-bad")}
      </div>
      {asked === "details" && (
        <Dialog title="Session" onClose={close} size="small">
          <SessionFacts
            session={session}
            onEdit={
              onEdit &&
              (() => {
                close();
                onEdit();
              })
            }
          />
        </Dialog>
      )}
      {asked === "stopAll" && (
        <Confirm
          title="Stop all"
          action={`Stop ${countOf(running + queued, "task")}`}
          onConfirm={() => mutate("stopAll")}
          onClose={close}
        >
          <p>Stops running tasks and cancels waiting ones.</p>
        </Confirm>
      )}
      {asked === "reset" && (
        <ConfirmByName
          name={key}
          title="Reset session"
          action="Reset session"
          onConfirm={() => mutate("reset")}
          onClose={close}
        >
          <p>
            All that runs or waits in it is ended, and it begins anew with an empty context: its agent does
            not know what was said before. The messages stay in the list.
          </p>
        </ConfirmByName>
      )}
    </>
  );
}

/** What a stop has ended, for the user. */
export function stoppedText({ stopped, cancelled }: StoppedTasks): string {
  const parts = [
    ...(stopped.length > 0 ? [`stopped ${countOf(stopped.length, "task")}`] : []),
    ...(cancelled.length > 0 ? [`cancelled ${countOf(cancelled.length, "task")} that waited`] : []),
  ].join(", ");
  return parts === "" ? "There was nothing to stop" : parts.charAt(0).toUpperCase() + parts.slice(1);
}
