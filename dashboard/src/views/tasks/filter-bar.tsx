import { useQuery } from "@tanstack/react-query";
import { type ReactNode, useEffect, useId, useRef, useState } from "react";
import { useSession } from "../../api/session.tsx";
import { useKeys } from "../../keys/use-keys.ts";
import { Icon } from "../../parts/icon.tsx";
import { stateWord } from "../../parts/state.tsx";
import type { UseFilters } from "../../parts/use-filters.ts";
import { FILTER_LABELS, TASK_FILTERS, TASK_TABS, type TaskFilterName } from "./task-filters.ts";

const NAMES = Object.keys(TASK_FILTERS) as TaskFilterName[];
/** A text is taken over this long after the last letter. */
const TYPING_MS = 400;

type TaskFiltering = UseFilters<typeof TASK_FILTERS>;

interface FilterBarProps {
  readonly filtering: TaskFiltering;
  /** Behind the filters. */
  readonly children?: ReactNode;
}

/** What the list shows, one chip each, and a way to add more. */
export function FilterBar({ filtering, children }: FilterBarProps) {
  const { filters, count, set, clear } = filtering;
  const [added, setAdded] = useState<TaskFilterName>();
  const add = useRef<HTMLSelectElement>(null);
  const shown = NAMES.filter((name) => filters[name] !== undefined || name === added);
  const free = NAMES.filter((name) => !shown.includes(name));
  useKeys({ "/": () => add.current?.focus() });
  return (
    <div className="bar" role="group" aria-label="Filters">
      {shown.map((name) => (
        <Chip
          key={name}
          name={name}
          value={filters[name] ?? ""}
          isNew={name === added}
          onChange={(value) => set({ [name]: value })}
          onRemove={() => {
            if (name === added) setAdded(undefined);
            set({ [name]: "" });
          }}
        />
      ))}
      {free.length > 0 && (
        <span className="chip chip-add">
          <Icon name="plus" size={12} />
          <select
            ref={add}
            className="chip-select"
            aria-label="Add a filter"
            value=""
            onChange={(event) => setAdded(event.target.value as TaskFilterName)}
          >
            <option value="">Filter</option>
            {free.map((name) => (
              <option key={name} value={name}>
                {FILTER_LABELS[name]}
              </option>
            ))}
          </select>
        </span>
      )}
      {count > 1 && (
        <button
          type="button"
          className="btn btn-quiet"
          onClick={() => {
            setAdded(undefined);
            clear();
          }}
        >
          Remove all
        </button>
      )}
      {children}
    </div>
  );
}

interface ChipProps {
  readonly name: TaskFilterName;
  readonly value: string;
  readonly isNew: boolean;
  readonly onChange: (value: string) => void;
  readonly onRemove: () => void;
}

function Chip({ name, value, isNew, onChange, onRemove }: ChipProps) {
  const label = FILTER_LABELS[name];
  const options =
    name === "state" ? stateOptions(value) : TASK_FILTERS[name]?.map((each) => [each, each] as const);
  return (
    <span className="chip">
      <span className="k" aria-hidden="true">
        {label}
      </span>
      {options === undefined ? (
        <ChipText name={name} label={label} value={value} isNew={isNew} onChange={onChange} />
      ) : (
        <select
          className="chip-select"
          aria-label={label}
          autoFocus={isNew}
          value={value}
          onChange={(event) => onChange(event.target.value)}
        >
          {value === "" && <option value="">any</option>}
          {options.map(([each, word]) => (
            <option key={each} value={each}>
              {word}
            </option>
          ))}
        </select>
      )}
      <button type="button" className="x" aria-label={`Remove filter ${label}`} onClick={onRemove}>
        <Icon name="x" size={12} />
      </button>
    </span>
  );
}

/** The groups of the tabs, then each state; and what the address says, if it is another. */
function stateOptions(value: string): (readonly [string, string])[] {
  const groups = TASK_TABS.filter(({ states }) => states.length > 1).map(
    ({ label, states }) => [states.join(","), label.toLowerCase()] as const,
  );
  const states = [...new Set(TASK_TABS.flatMap((tab) => tab.states))];
  const single = states.map((state) => [state, stateWord(state).toLowerCase()] as const);
  const known = [...groups, ...single];
  return value === "" || known.some(([each]) => each === value) ? known : [...known, [value, value]];
}

/** Its choices are there at once, from what the server knows by name; any other text will do. */
function ChipText({
  name,
  label,
  value,
  isNew,
  onChange,
}: Omit<ChipProps, "onRemove"> & { readonly label: string }) {
  const { client, may } = useSession();
  const [draft, setDraft] = useState(value);
  const listId = useId();
  const input = useRef<HTMLInputElement>(null);
  useEffect(() => setDraft(value), [value]);
  useEffect(() => {
    if (isNew) input.current?.focus();
  }, [isNew]);
  // biome-ignore lint/correctness/useExhaustiveDependencies: only what is typed moves the clock.
  useEffect(() => {
    if (draft.trim() === value) return;
    const timer = setTimeout(() => onChange(draft.trim()), TYPING_MS);
    return () => clearTimeout(timer);
  }, [draft]);
  const hasChoices = name === "agentId" || name === "lane";
  const { data: choices = [] } = useQuery({
    queryKey: ["choices", name],
    queryFn: async ({ signal }) =>
      name === "lane"
        ? (await client.lanes.list({ signal })).lanes.map((lane) => lane.name)
        : (await client.agents.list({}, { signal })).agents.map((agent) => agent.id),
    enabled: hasChoices && may("read"),
    staleTime: 60_000,
  });
  return (
    <>
      <input
        ref={input}
        className="chip-input"
        aria-label={label}
        placeholder="any"
        spellCheck={false}
        value={draft}
        list={hasChoices ? listId : undefined}
        onChange={(event) => setDraft(event.target.value)}
        onKeyDown={(event) => {
          if (event.key === "Enter") onChange(draft.trim());
        }}
      />
      {hasChoices && (
        <datalist id={listId}>
          {choices.map((choice) => (
            <option key={choice} value={choice} />
          ))}
        </datalist>
      )}
    </>
  );
}
