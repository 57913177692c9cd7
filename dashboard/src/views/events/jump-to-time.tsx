import { useSession } from "../../api/session.tsx";
import { useAction } from "../../parts/use-action.ts";
import { firstAfter } from "./find-event.ts";

interface JumpToTimeProps {
  /** The list does not begin with the newest event. */
  readonly isAway: boolean;
  /** The list is to begin before this number. Undefined: with the newest. */
  readonly onJump: (seq: number | undefined) => void;
}

/** A field for a time. The list then begins with the last event up to it. */
export function JumpToTime({ isAway, onJump }: JumpToTimeProps) {
  const { client } = useSession();
  const { mutate, isPending } = useAction(
    (at: number) => firstAfter(at, (filter) => client.eventPage(filter)),
    { onDone: onJump },
  );
  return (
    <>
      {isAway && (
        <button type="button" className="btn" onClick={() => onJump(undefined)}>
          Newest
        </button>
      )}
      <span className="chip">
        <span className="k" aria-hidden="true">
          Up to
        </span>
        <input
          className="chip-input"
          type="datetime-local"
          aria-label="Up to this time"
          disabled={isPending}
          onChange={({ target: { value } }) => value !== "" && mutate(Date.parse(value))}
        />
      </span>
    </>
  );
}
