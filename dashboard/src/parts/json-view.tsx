import { type ReactNode, useMemo, useState } from "react";
import { isExact } from "../api/exact-json.ts";
import { Button } from "./button.tsx";
import { formatCount } from "./format.ts";

/** Arrays and objects with more entries are folded at first. */
const FOLD_ITEMS = 20;
/** Larger values are not drawn until the user asks for them. */
const LARGE_CHARS = 200 * 1_024;
/** Browsers become slow with more text in one element; all of it can be downloaded. */
const SHOWN_CHARS = 1_024 * 1_024;
/** So many entries are drawn at once. */
const ENTRIES = 500;
/** Deeper levels are folded at first. */
const FOLD_DEPTH = 6;

interface JsonViewProps {
  readonly value: unknown;
  readonly label: string;
  /** Whether the keys of objects are in alphabetical order, and not as they were sent. */
  readonly isSorted?: boolean;
}

/** A value as JSON, coloured and foldable. A text is shown as it is. Contents are never rendered as HTML. */
export function JsonView({ value: given, label, isSorted = false }: JsonViewProps) {
  const value = useMemo(() => (isSorted ? withSortedKeys(given) : given), [given, isSorted]);
  const text = useMemo(() => toText(value), [value]);
  const [isOpen, setOpen] = useState(false);
  if (text.length > LARGE_CHARS && !isOpen) {
    return (
      <div className="well">
        <div className="well-head">
          <span>{formatCount(Math.round(text.length / 1_024))} KiB</span>
          <span className="grow" />
          <Button className="btn-quiet" onClick={() => setOpen(true)}>
            Show
          </Button>
          <Button className="btn-quiet" onClick={() => download(text, `${label}.json`)}>
            Download
          </Button>
        </div>
      </div>
    );
  }
  const hidden = text.length - SHOWN_CHARS;
  return (
    <div className="well">
      <pre className="code" tabIndex={0} aria-label={label} role="region">
        {typeof value === "string" || text.length > LARGE_CHARS ? (
          text.slice(0, SHOWN_CHARS)
        ) : (
          <Value value={value} depth={0} />
        )}
        {hidden > 0 && (
          <button type="button" className="fold" onClick={() => download(text, `${label}.json`)}>
            {formatCount(Math.ceil(hidden / 1_024))} KiB more: download
          </button>
        )}
      </pre>
    </div>
  );
}

/** Whether there is an object with keys to sort. */
export function hasKeys(value: unknown): boolean {
  if (typeof value !== "object" || value === null || isExact(value)) return false;
  const items = Object.values(value);
  return (!Array.isArray(value) && items.length > 1) || items.some(hasKeys);
}

function withSortedKeys(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(withSortedKeys);
  if (typeof value !== "object" || value === null || isExact(value)) return value;
  const keys = Object.keys(value).sort();
  return Object.fromEntries(
    keys.map((key) => [key, withSortedKeys((value as Record<string, unknown>)[key])]),
  );
}

/** The text that is shown and copied. */
export function toText(value: unknown): string {
  return typeof value === "string" ? value : (JSON.stringify(value, null, 2) ?? "");
}

function Value({ value, depth }: { readonly value: unknown; readonly depth: number }): ReactNode {
  if (Array.isArray(value)) {
    return <Group entries={value.map((item) => [undefined, item])} brackets="[]" depth={depth} />;
  }
  if (typeof value === "object" && value !== null && !isExact(value)) {
    return <Group entries={Object.entries(value)} brackets="{}" depth={depth} />;
  }
  if (typeof value === "string") return <span className="s">{JSON.stringify(value)}</span>;
  return (
    <span className="n" title={hasLostDigits(value) ? LOST_DIGITS : undefined}>
      {JSON.stringify(value)}
    </span>
  );
}

const LOST_DIGITS = "A number of this size is kept to about 16 digits. Send it as text to keep all of them.";

/** Whether another number may have been meant: neither the server nor a browser keeps more digits. */
function hasLostDigits(value: unknown): boolean {
  return Number.isInteger(value) && !Number.isSafeInteger(value);
}

interface GroupProps {
  readonly entries: readonly (readonly [string | undefined, unknown])[];
  readonly brackets: "[]" | "{}";
  readonly depth: number;
}

function Group({ entries, brackets, depth }: GroupProps): ReactNode {
  const [isOpen, setOpen] = useState(depth === 0 || (entries.length <= FOLD_ITEMS && depth < FOLD_DEPTH));
  const [shown, setShown] = useState(ENTRIES);
  const [left, right] = brackets;
  if (entries.length === 0) return <span className="p">{brackets}</span>;
  if (!isOpen) {
    const noun = brackets === "[]" ? "item" : "field";
    return (
      <button type="button" className="fold" onClick={() => setOpen(true)}>
        {left} {formatCount(entries.length)} {noun}
        {entries.length === 1 ? "" : "s"} {right}
      </button>
    );
  }
  const indent = "  ".repeat(depth + 1);
  return (
    <>
      <span className="p">{left}</span>
      {entries.slice(0, shown).map(([key, item], index) => (
        // biome-ignore lint/suspicious/noArrayIndexKey: the entries of a value stay where they are.
        <span key={index}>
          {`\n${indent}`}
          {key !== undefined && (
            <>
              <span className="k">{JSON.stringify(key)}</span>:{" "}
            </>
          )}
          <Value value={item} depth={depth + 1} />
          {index < entries.length - 1 && ","}
        </span>
      ))}
      {entries.length > shown && (
        <>
          {`\n${indent}`}
          <button type="button" className="fold" onClick={() => setShown(shown + ENTRIES)}>
            {formatCount(entries.length - shown)} more
          </button>
        </>
      )}
      {`\n${"  ".repeat(depth)}`}
      <span className="p">{right}</span>
    </>
  );
}

function download(text: string, name: string): void {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(new Blob([text], { type: "application/json" }));
  link.download = name;
  link.click();
  URL.revokeObjectURL(link.href);
}
