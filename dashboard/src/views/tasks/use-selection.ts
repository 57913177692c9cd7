import { useCallback, useMemo, useRef, useState } from "react";
import type { TaskRow } from "../../../../src/client/index.ts";

export interface Selection {
  readonly ids: ReadonlySet<string>;
  /** Whether all loaded tasks are selected. */
  readonly isAll: boolean;
  /** Whether all tasks that match are selected, including those not loaded. */
  readonly isMatching: boolean;
  readonly selectMatching: () => void;
  /** With `isRange`: all from the one that was toggled last. */
  readonly toggle: (index: number, isRange: boolean) => void;
  readonly toggleAll: () => void;
  readonly clear: () => void;
}

export function useSelection(tasks: readonly TaskRow[]): Selection {
  const [ids, setIds] = useState<ReadonlySet<string>>(new Set());
  const [isMatching, setMatching] = useState(false);
  const current = useRef(tasks);
  current.current = tasks;
  /** The id, since rows appear and disappear above it. */
  const anchor = useRef<string>(undefined);
  const isAll = isMatching || (tasks.length > 0 && ids.size >= tasks.length);
  const toggle = useCallback(
    (index: number, isRange: boolean) => {
      const rows = current.current;
      const id = rows[index]?.taskId;
      if (id === undefined) return;
      const anchorIndex = rows.findIndex(({ taskId }) => taskId === anchor.current);
      const other = isRange && anchorIndex !== -1 ? anchorIndex : index;
      anchor.current = id;
      setMatching(false);
      setIds((before) => {
        // Of all that match, only those that are loaded can stay selected one by one.
        const after = new Set(isMatching ? rows.map(({ taskId }) => taskId) : before);
        const isOn = !after.has(id);
        const [from, to] = [Math.min(other, index), Math.max(other, index)];
        for (const { taskId } of rows.slice(from, to + 1)) {
          if (isOn) after.add(taskId);
          else after.delete(taskId);
        }
        return after;
      });
    },
    [isMatching],
  );
  const clear = useCallback(() => {
    setMatching(false);
    setIds(new Set());
  }, []);
  const selectMatching = useCallback(() => setMatching(true), []);
  const toggleAll = useCallback(() => {
    if (isAll) clear();
    else setIds(new Set(current.current.map(({ taskId }) => taskId)));
  }, [isAll, clear]);
  return useMemo(
    () => ({ ids, isAll, isMatching, selectMatching, toggle, toggleAll, clear }),
    [ids, isAll, isMatching, selectMatching, toggle, toggleAll, clear],
  );
}
