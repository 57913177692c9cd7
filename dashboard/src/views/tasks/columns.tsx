import { useState } from "react";
import { IconButton } from "../../parts/button.tsx";
import { Dialog } from "../../parts/dialog.tsx";

/** Columns that can be hidden. The last three are shown on wide screens only. */
const COLUMNS = {
  agent: "Agent",
  lane: "Lane",
  why: "State",
  wait: "Wait",
  run: "Run",
  tok: "Tokens",
  id: "Id",
  prio: "Priority",
  tries: "Attempts",
} as const;

export type Column = keyof typeof COLUMNS;

/** The hidden columns. */
export function parseColumns(kept: unknown): readonly Column[] {
  return Array.isArray(kept) ? kept.filter((name): name is Column => Object.hasOwn(COLUMNS, name)) : [];
}

interface ColumnsProps {
  readonly hidden: readonly Column[];
  readonly onChange: (hidden: readonly Column[]) => void;
}

export function Columns({ hidden, onChange }: ColumnsProps) {
  const [isOpen, setOpen] = useState(false);
  return (
    <>
      <IconButton icon="columns" className="hide-s" label="Columns" onClick={() => setOpen(true)} />
      {isOpen && (
        <Dialog title="Columns" onClose={() => setOpen(false)} size="small">
          <div className="dialog-form">
            {(Object.keys(COLUMNS) as Column[]).map((name) => (
              <label key={name} className="check-row">
                <input
                  type="checkbox"
                  className="check"
                  checked={!hidden.includes(name)}
                  onChange={({ target }) =>
                    onChange(target.checked ? hidden.filter((each) => each !== name) : [...hidden, name])
                  }
                />
                {COLUMNS[name]}
              </label>
            ))}
          </div>
        </Dialog>
      )}
    </>
  );
}
