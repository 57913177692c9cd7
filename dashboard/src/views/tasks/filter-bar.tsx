import { type ReactNode, type RefObject, useEffect, useId, useRef, useState } from "react";
import type { Task } from "../../../../src/client/index.ts";
import { useSession } from "../../api/session.tsx";
import { useKeys } from "../../keys/use-keys.ts";
import { Button } from "../../parts/button.tsx";
import { Icon } from "../../parts/icon.tsx";
import { stateWord } from "../../parts/state.tsx";
import type { UseFilters } from "../../parts/use-filters.ts";
import { fromField, toField } from "../../parts/zone.ts";
import { useQuery } from "../../queries/use-query.ts";
import { FILTER_LABELS, RANGES, TASK_FILTERS, TASK_TABS, type TaskFilterName } from "./task-filters.ts";

const NAMES = Object.keys(FILTER_LABELS) as TaskFilterName[];
const MINUTE_MS = 60_000;
/** A text is applied this long after the last keystroke. */
const TYPING_MS = 400;
/** The keys of metadata that are suggested are those of so many tasks. */
const KEYS_FROM = 20;

type TaskFiltering = UseFilters<typeof TASK_FILTERS>;

interface FilterBarProps {
  readonly filtering: TaskFiltering;
  /** Shown after the filters. */
  readonly children?: ReactNode;
}

/** The filters of the list, one chip each, and a menu to add more. */
export function FilterBar({ filtering, children }: FilterBarProps) {
  const { filters, set, clear } = filtering;
  const [added, setAdded] = useState<TaskFilterName>();
  const search = useRef<HTMLInputElement>(null);
  const shown = NAMES.filter((name) => filters[name] !== undefined || name === added);
  const free = NAMES.filter((name) => !shown.includes(name));
  useKeys({ "/": () => search.current?.focus() });
  return (
    <div className="bar" role="group" aria-label="Filters">
      <Search field={search} value={filters.q ?? ""} onChange={(q) => set({ q })} />
      {shown.map((name) => (
        <Chip
          key={name}
          name={name}
          label={name === "from" && filters.order === "completed" ? "Ended" : FILTER_LABELS[name]}
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
      {shown.length > 1 && (
        <Button
          className="btn-quiet"
          onClick={() => {
            setAdded(undefined);
            clear();
          }}
        >
          Remove all
        </Button>
      )}
      <span className="grow" />
      {children}
      <span className="chip chip-order">
        <Icon name="sort" size={12} />
        <select
          className="chip-select"
          aria-label="Order"
          value={filters.sort ?? filters.order ?? ""}
          onChange={({ target: { value } }) =>
            set(value === "run" ? { sort: value } : { order: value, sort: "" })
          }
        >
          <option value="">Newest</option>
          <option value="oldest">Oldest</option>
          <option value="completed">Ended last</option>
          <option value="run">Longest run</option>
        </select>
      </span>
    </div>
  );
}

interface SearchProps {
  readonly field: RefObject<HTMLInputElement | null>;
  readonly value: string;
  readonly onChange: (value: string) => void;
}

function Search({ field, value, onChange }: SearchProps) {
  const [draft, setDraft] = useDraft(value, onChange);
  return (
    <span className="chip chip-search">
      <Icon name="search" size={14} />
      <input
        ref={field}
        type="search"
        className="chip-input"
        aria-label="Search tasks"
        placeholder="Id, batch or key"
        spellCheck={false}
        value={draft}
        onChange={(event) => setDraft(event.target.value)}
        onKeyDown={(event) => {
          if (event.key === "Enter") onChange(draft.trim());
          else if (event.key === "Escape") event.currentTarget.blur();
        }}
      />
    </span>
  );
}

/** The text that the user types, applied after a pause. */
function useDraft(value: string, onChange: (value: string) => void) {
  const [draft, setDraft] = useState(value);
  useEffect(() => setDraft(value), [value]);
  // biome-ignore lint/correctness/useExhaustiveDependencies: only what is typed moves the clock.
  useEffect(() => {
    if (draft.trim() === value) return;
    const timer = setTimeout(() => onChange(draft.trim()), TYPING_MS);
    return () => clearTimeout(timer);
  }, [draft]);
  return [draft, setDraft] as const;
}

interface ChipProps {
  readonly name: TaskFilterName;
  readonly label: string;
  readonly value: string;
  readonly isNew: boolean;
  readonly onChange: (value: string) => void;
  readonly onRemove: () => void;
}

function Chip({ name, label, value, isNew, onChange, onRemove }: ChipProps) {
  const options = optionsOf(name, value);
  return (
    <span className="chip">
      <span className="k" aria-hidden="true">
        {label}
      </span>
      {name === "to" || (name === "from" && isMoment(value)) ? (
        <input
          type="datetime-local"
          className="chip-input"
          aria-label={label}
          autoFocus={isNew}
          value={fieldOf(value)}
          onChange={(event) => onChange(momentOf(event.target.value))}
        />
      ) : options === undefined ? (
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

/** Undefined: any text. */
function optionsOf(name: TaskFilterName, value: string): readonly (readonly [string, string])[] | undefined {
  if (name === "state") return stateOptions(value);
  if (name !== "from") return TASK_FILTERS[name]?.map((each) => [each, each] as const);
  const ranges = Object.entries(RANGES).map(([each, { label }]) => [each, label] as const);
  const hourAgo = Math.floor(Date.now() / MINUTE_MS - 60) * MINUTE_MS;
  return [...ranges, [new Date(hourAgo).toISOString(), "since a moment"]];
}

function isMoment(value: string): boolean {
  return value !== "" && RANGES[value] === undefined;
}

/** The value of the field, to the minute. */
function fieldOf(value: string): string {
  const at = Date.parse(value);
  return Number.isNaN(at) ? "" : toField(at).slice(0, 16);
}

function momentOf(field: string): string {
  const at = fromField(field);
  return Number.isNaN(at) ? "" : new Date(at).toISOString();
}

/** The groups of the tabs, then each state with a word of its own, then the value of the address if it is another one. */
function stateOptions(value: string): (readonly [string, string])[] {
  const groups = TASK_TABS.filter(({ states }) => states.length > 1).map(
    ({ label, states }) => [states.join(","), label.toLowerCase()] as const,
  );
  const states = [...new Set(TASK_TABS.flatMap((tab) => tab.states))];
  const single = states
    .map((state) => [state, stateWord(state).toLowerCase()] as const)
    .filter(([, word]) => groups.every(([, group]) => group !== word));
  const known = [...groups, ...single];
  return value === "" || known.some(([each]) => each === value) ? known : [...known, [value, value]];
}

/** Suggests the names that the server knows. Any other text is allowed too. */
function ChipText({ name, label, value, isNew, onChange }: Omit<ChipProps, "onRemove">) {
  const { client, may } = useSession();
  const [draft, setDraft] = useDraft(value, onChange);
  const listId = useId();
  const input = useRef<HTMLInputElement>(null);
  useEffect(() => {
    if (isNew) input.current?.focus();
  }, [isNew]);
  const hasChoices = name === "agentId" || name === "lane" || name === "group";
  const { data: choices = [] } = useQuery({
    queryKey: ["choices", name],
    queryFn: async ({ signal }) =>
      name === "lane"
        ? (await client.lanes.list({ signal })).lanes.map((lane) => lane.name)
        : name === "group"
          ? metadataKeys((await client.tasks.list({ limit: KEYS_FROM }, { signal })).tasks)
          : (await client.agents.list({}, { signal })).agents.map((agent) => agent.id),
    enabled: hasChoices && (may("read") || name === "group"),
    staleTime: 60_000,
  });
  return (
    <>
      <input
        ref={input}
        className="chip-input"
        aria-label={label}
        placeholder={name === "group" ? "metadata key" : "any"}
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

function metadataKeys(tasks: readonly Task[]): string[] {
  return [...new Set(tasks.flatMap(({ metadata }) => Object.keys(metadata ?? {})))].sort();
}
