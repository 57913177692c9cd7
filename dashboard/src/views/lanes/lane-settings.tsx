import { type CSSProperties, type KeyboardEvent, useEffect, useId, useRef, useState } from "react";
import type { LaneInfo, LaneList } from "../../../../src/client/index.ts";
import { hasCode, sentenceOf } from "../../api/errors.ts";
import { useSession } from "../../api/session.tsx";
import { formatCount } from "../../parts/format.ts";
import { Icon } from "../../parts/icon.tsx";
import { useToast } from "../../parts/toast.tsx";
import { useQueryClient } from "../../queries/query-context.ts";
import { useMutation } from "../../queries/use-mutation.ts";

/** Arrow keys move a slider step by step: the value is saved this long after the last key. */
const REST_MS = 400;
const SLIDER_MIN_END = 10;
/** The lane whose size is `scheduler.workerCount` and `scheduler.maxInflight`. The server refuses other changes of it. */
const TASKS_LANE = "tasks";

type Setting = "concurrency" | "total";

/** The concurrency of a lane. An admin can change it, unless the configuration file or a variable sets it. */
export function LaneSettings({ lane }: { readonly lane: LaneInfo }) {
  const { may } = useSession();
  const [refusal, setRefusal] = useState<string>();
  if (!may("administer")) {
    return (
      <div className="lane-set">
        <Limits lane={lane} />
      </div>
    );
  }
  if (lane.name === TASKS_LANE || refusal !== undefined) {
    return (
      <div className="lane-set">
        <Limits lane={lane} />
        <p className="lane-lock" role={refusal === undefined ? undefined : "alert"}>
          <Icon name="lock" />
          <span>{refusal ?? "Set under scheduler in the configuration. Change it there."}</span>
        </p>
      </div>
    );
  }
  return <Controls lane={lane} onRefused={setRefusal} />;
}

function Limits({ lane: { concurrency, total } }: { readonly lane: LaneInfo }) {
  return (
    <>
      <div className="row">
        <span className="sub">Concurrency</span>
        <span className="muted">on each node</span>
        <span className="num">{formatCount(concurrency)}</span>
      </div>
      <div className="row">
        <span className="sub">Total</span>
        <span className="muted">{total === null ? "no limit over all nodes" : "over all nodes"}</span>
        <span className="num">{total === null ? "–" : formatCount(total)}</span>
      </div>
    </>
  );
}

interface ControlsProps {
  readonly lane: LaneInfo;
  /** Called if the configuration sets the lane. */
  readonly onRefused: (why: string) => void;
}

function Controls({ lane, onRefused }: ControlsProps) {
  const { name, concurrency, total } = lane;
  const id = useId();
  const { save, draft, setDraft } = useSettings(lane, onRefused);
  // The maximum stays fixed while the user moves the slider, and grows with the number in the field.
  const needed = Math.max(SLIDER_MIN_END, concurrency * 2);
  const [end, setEnd] = useState(needed);
  const shown = draft ?? concurrency;
  useEffect(
    () => setEnd((current) => (concurrency > current * 0.8 ? needed : current)),
    [concurrency, needed],
  );
  return (
    <div className="lane-set">
      <div className="row">
        <label htmlFor={`${id}-slider`}>Concurrency</label>
        <Slider id={`${id}-slider`} value={shown} end={end} onMove={setDraft} onRelease={save} />
        <NumberField
          label={`Concurrency of ${name}`}
          value={shown}
          isOptional={false}
          onCommit={(value) => save({ concurrency: value ?? 0 })}
        />
      </div>
      <div className="row">
        <span className="sub" aria-hidden="true">
          Total
        </span>
        <span className="muted">{total === null ? "no limit over all nodes" : "over all nodes"}</span>
        <NumberField
          label={`Total of ${name}`}
          value={total}
          isOptional
          onCommit={(value) => save({ total: value })}
        />
      </div>
    </div>
  );
}

type Change = Partial<Pick<LaneInfo, Setting>>;

/** Saves the value, and offers to undo that. */
function useSettings(lane: LaneInfo, onRefused: (why: string) => void) {
  const { client } = useSession();
  const queries = useQueryClient();
  const toast = useToast();
  const [draft, setDraft] = useState<number>();
  const { mutate } = useMutation({
    mutationFn: ({ after }: { before: LaneInfo; after: LaneInfo; isUndo?: boolean }) =>
      client.lanes.put(after.name, { concurrency: after.concurrency, total: after.total }),
    onSuccess: (stored, { before, after, isUndo = false }) => {
      queries.setQueryData<LaneList>(["lanes"], (list) => list && withLane(list, stored));
      if (isUndo) return toast(`Lane ${after.name}: as before`);
      toast(sayChange(before, after), {
        label: "Undo",
        run: () => mutate({ before: after, after: before, isUndo: true }),
      });
    },
    onError: (error) =>
      hasCode(error, "conflict") ? onRefused(sentenceOf(error)) : toast(sentenceOf(error)),
    onSettled: () => {
      setDraft(undefined);
      void queries.invalidateQueries({ queryKey: ["lanes"] });
    },
  });
  const save = (change: Change) => {
    const after = { ...lane, ...change };
    if (after.concurrency === lane.concurrency && after.total === lane.total) return setDraft(undefined);
    if (change.concurrency !== undefined) setDraft(change.concurrency);
    mutate({ before: lane, after });
  };
  return { draft, setDraft, save };
}

function withLane({ lanes }: LaneList, stored: LaneInfo): LaneList {
  return { lanes: lanes.map((each) => (each.name === stored.name ? stored : each)) };
}

function sayChange(before: LaneInfo, after: LaneInfo): string {
  const say = (total: number | null) => (total === null ? "none" : formatCount(total));
  return before.concurrency === after.concurrency
    ? `Lane ${after.name}: total ${say(before.total)} to ${say(after.total)}`
    : `Lane ${after.name}: concurrency ${formatCount(before.concurrency)} to ${formatCount(after.concurrency)} on every node`;
}

interface SliderProps {
  readonly id: string;
  readonly value: number;
  readonly end: number;
  readonly onMove: (value: number) => void;
  readonly onRelease: (change: Change) => void;
}

/** A slider that saves its value when the user releases it. */
function Slider({ id, value, end, onMove, onRelease }: SliderProps) {
  const input = useRef<HTMLInputElement>(null);
  const release = useRef(onRelease);
  release.current = onRelease;
  useEffect(() => {
    const element = input.current;
    let timer: ReturnType<typeof setTimeout> | undefined;
    // React's `onChange` fires on every movement. The browser's `change` fires on release, or after a key.
    const changed = () => {
      clearTimeout(timer);
      timer = setTimeout(() => release.current({ concurrency: Number(element?.value) }), REST_MS);
    };
    element?.addEventListener("change", changed);
    return () => {
      clearTimeout(timer);
      element?.removeEventListener("change", changed);
    };
  }, []);
  const max = Math.max(end, value);
  return (
    <input
      ref={input}
      id={id}
      type="range"
      className="slider"
      min={0}
      max={max}
      value={value}
      style={{ "--at": `${(value / max) * 100}%` } as CSSProperties}
      onChange={(event) => onMove(Number(event.target.value))}
    />
  );
}

interface NumberFieldProps {
  readonly label: string;
  readonly value: number | null;
  /** Whether it may be empty, which means null. */
  readonly isOptional: boolean;
  readonly onCommit: (value: number | null) => void;
}

/** A field that saves with Enter or when it loses focus; Escape discards what was typed. */
function NumberField({ label, value, isOptional, onCommit }: NumberFieldProps) {
  const [typed, setTyped] = useState<string>();
  const text = value === null ? "" : String(value);
  const isWrong = typed !== undefined && !(/^\d+$/.test(typed.trim()) || (isOptional && typed.trim() === ""));
  const commit = () => {
    setTyped(undefined);
    if (typed === undefined || isWrong || typed.trim() === text) return;
    onCommit(typed.trim() === "" ? null : Number(typed));
  };
  const press = (event: KeyboardEvent) => {
    if (event.key === "Enter") commit();
    if (event.key === "Escape") setTyped(undefined);
  };
  return (
    <input
      className="input input-num"
      inputMode="numeric"
      aria-label={label}
      aria-invalid={isWrong}
      placeholder="–"
      value={typed ?? text}
      onChange={(event) => setTyped(event.target.value)}
      onKeyDown={press}
      onBlur={commit}
    />
  );
}
