import { useRef, useState } from "react";
import type { RotaClient } from "../../../../src/client/index.ts";
import { useSession } from "../../api/session.tsx";
import { Icon } from "../../parts/icon.tsx";
import { useAction } from "../../parts/use-action.ts";
import { fromField } from "../../parts/zone.ts";
import { seqAt } from "./seq-at.ts";

interface JumpToTimeProps {
  /** Whether the list begins in the past. */
  readonly isSet: boolean;
  /** With the number of the event before which the list begins; empty: with the newest one. */
  readonly onJump: (before: string) => void;
}

/** Shows the events up to a time. */
export function JumpToTime({ isSet, onJump }: JumpToTimeProps) {
  const { client } = useSession();
  const [text, setText] = useState("");
  const jump = useAction((at: number) => seqAt(at, (query) => oneEvent(client, query)), {
    onDone: (seq) => onJump(seq === undefined ? "" : String(seq)),
  });
  /** What was jumped to last: to leave the field does not do it again. */
  const last = useRef("");
  const go = () => {
    const at = fromField(text);
    if (Number.isNaN(at) || text === last.current) return;
    last.current = text;
    jump.mutate(at);
  };
  return (
    <span className="chip">
      <span className="k" aria-hidden="true">
        Up to
      </span>
      <input
        type="datetime-local"
        className={text === "" ? "chip-input muted" : "chip-input"}
        aria-label="Up to"
        value={text}
        disabled={jump.isPending}
        onChange={(event) => setText(event.target.value)}
        onBlur={go}
        onKeyDown={(event) => event.key === "Enter" && go()}
      />
      {isSet && (
        <button
          type="button"
          className="x"
          aria-label="Show the newest events"
          onClick={() => {
            last.current = "";
            setText("");
            onJump("");
          }}
        >
          <Icon name="x" size={12} />
        </button>
      )}
    </span>
  );
}

async function oneEvent(client: RotaClient, query: { readonly after?: number; readonly before?: number }) {
  const { events } = await client.eventPage({ ...query, limit: 1 });
  return events[0];
}
