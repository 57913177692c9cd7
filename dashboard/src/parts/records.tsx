import { type CSSProperties, type ReactNode, useEffect, useRef, useState } from "react";
import { type KeyActions, useKeys } from "../keys/use-keys.ts";
import { Heading } from "./heading.ts";
import { ShowMore } from "./notices.tsx";
import "./records.css";
import { openRow } from "./open-row.ts";
import { Link, useLocation } from "./router.tsx";
import { type Glyph, StateGlyph } from "./state.tsx";
import { useRowsOnScreen } from "./use-rows-on-screen.ts";

export interface Column<Row> {
  readonly head: string;
  /** Its track: `6rem`, or `minmax(8rem, 1fr)`. */
  readonly width: string;
  readonly cell: (row: Row) => ReactNode;
  readonly className?: string;
  /** In front of it: a state, and its word for screen readers. Null: none, but room for it. */
  readonly glyph?: (row: Row) => readonly [Glyph, string?] | null;
  /** Where it is on a phone: the name, beside it, or below these. Left out: it is hidden there. */
  readonly phone?: "main" | "side" | "below" | "end";
  /** It is shown from this width on: not on a narrow screen, or only on a very wide one. */
  readonly from?: "wide" | "widest";
  /** The list is sorted by it. */
  readonly sort?: "ascending" | "descending" | undefined;
}

interface RecordsProps<Row> {
  readonly label: string;
  readonly columns: readonly Column<Row>[];
  /** In their order, with headings between them. */
  readonly rows: readonly (Row | Heading)[];
  readonly keyOf: (row: Row) => string | number;
  /** What a heading shows. */
  readonly heading?: (heading: Heading) => ReactNode;
  /** What a click on the row opens. */
  readonly href?: (row: Row) => string | undefined;
  /** Buttons at the end of the row. */
  readonly actions?: ((row: Row) => ReactNode) | undefined;
  /** The track of the buttons. */
  readonly actionsWidth?: string;
  /** Further pages are loaded with a button, or before the end of the list is on the screen. Left out: there are none. */
  readonly onMore?: (() => unknown) | undefined;
  readonly isFetching?: boolean;
  readonly isEndless?: boolean;
  readonly select?: Select<Row> | undefined;
}

/** A checkbox in each row, and one for all. */
interface Select<Row> {
  readonly all: ReactNode;
  readonly one: (row: Row, index: number) => ReactNode;
  readonly isSelected: (row: Row) => boolean;
  /** On a phone: whether the checkboxes are shown. */
  readonly isShown: boolean;
  readonly keys: (index: number) => KeyActions;
}

/** The next page is fetched this many rows before the end. */
const AHEAD_ROWS = 40;

/** A list of any length, of which only the rows on the screen are drawn. `j` and `k` move, `enter` opens. */
export function Records<Row>(props: RecordsProps<Row>) {
  const { label, columns, rows, keyOf, href, actions, actionsWidth = "7rem", select, heading } = props;
  const { onMore, isFetching = false, isEndless = false } = props;
  const box = useRef<HTMLDivElement>(null);
  const { from, to, rowPx, scrollTo } = useRowsOnScreen(box, rows.length);
  const [cursorKey, setCursorKey] = useState<string | number>();
  const [, navigate] = useLocation();
  // biome-ignore lint/correctness/useExhaustiveDependencies: whenever the last row that is drawn changes, or rows came.
  useEffect(() => {
    if (isEndless && to >= rows.length - AHEAD_ROWS) onMore?.();
  }, [to, rows.length, onMore === undefined]);
  const cursor =
    cursorKey === undefined
      ? -1
      : rows.findIndex((row) => !(row instanceof Heading) && keyOf(row) === cursorKey);
  const move = (step: number) => {
    let next = Math.max(0, Math.min(rows.length - 1, cursor + step));
    // The first entry may be a heading, the last one is none.
    if (rows[next] instanceof Heading) next += next === 0 ? 1 : step;
    const row = rows[next];
    if (row === undefined || row instanceof Heading) return;
    setCursorKey(keyOf(row));
    scrollTo(next);
  };
  const current = rows[cursor];
  const target = current === undefined || current instanceof Heading ? undefined : href?.(current);
  useKeys({
    j: () => move(1),
    k: () => move(-1),
    ...(target !== undefined && { enter: () => navigate(target) }),
    ...(current !== undefined && select?.keys(cursor)),
  });
  const tracks = (all: readonly Column<Row>[]) =>
    [select && "20px", ...all.map(({ width }) => width), actions && actionsWidth].filter(Boolean).join(" ");
  const style = {
    "--cols-xl": tracks(columns),
    "--cols-l": tracks(columns.filter((each) => each.from !== "widest")),
    "--cols-m": tracks(columns.filter((each) => each.from === undefined)),
  };
  return (
    <>
      <div
        className={select?.isShown ? "list rec selecting" : "list rec"}
        role="table"
        aria-label={label}
        aria-rowcount={onMore === undefined ? rows.length + 1 : -1}
        style={style as CSSProperties}
      >
        <div className="lhead" role="row">
          {select && (
            <span role="columnheader" className="over">
              {select.all}
            </span>
          )}
          {columns.map(({ head, className = "", from: first, sort }) => (
            <span
              key={head}
              role="columnheader"
              className={`${className.includes("num") ? "num" : ""} ${first ?? ""}`}
              aria-sort={sort}
            >
              {head}
            </span>
          ))}
          {actions && (
            <span role="columnheader">
              <span className="vh">Actions</span>
            </span>
          )}
        </div>
        <div className="lbody" role="rowgroup" ref={box} style={{ height: rows.length * rowPx }}>
          {rows.slice(from, to).map((row, index) => {
            const at = from + index;
            const style = { transform: `translateY(${at * rowPx}px)` };
            if (row instanceof Heading) {
              return (
                <div
                  key={`of ${row.value}`}
                  className="lrow lgroup"
                  role="row"
                  aria-rowindex={at + 2}
                  style={style}
                >
                  <span role="cell">{heading?.(row)}</span>
                </div>
              );
            }
            const link = href?.(row);
            return (
              <div
                key={keyOf(row)}
                className="lrow"
                role="row"
                aria-rowindex={at + 2}
                aria-selected={select?.isSelected(row)}
                onClickCapture={openRow}
                data-cursor={at === cursor ? "" : undefined}
                style={style}
              >
                {select && (
                  <span role="cell" className="over no-cut">
                    {select.one(row, at)}
                  </span>
                )}
                {columns.map(({ head, cell, glyph, className = "", phone = "", from: first = "" }) => (
                  <span
                    key={head}
                    role="cell"
                    className={`${className} ${glyph ? "state" : ""} ${phone && `p-${phone}`} ${first}`}
                  >
                    {glyph && <RowGlyph shown={glyph(row)} />}
                    {phone === "main" && link !== undefined ? (
                      <Link className="main-link name" href={link}>
                        {cell(row)}
                      </Link>
                    ) : (
                      cell(row)
                    )}
                  </span>
                ))}
                {actions && (
                  <span role="cell" className="acts over">
                    {actions(row)}
                  </span>
                )}
              </div>
            );
          })}
        </div>
      </div>
      {onMore !== undefined && !isEndless && (
        <p className="list-end">
          <ShowMore isFetching={isFetching} onMore={onMore} />
        </p>
      )}
    </>
  );
}

function RowGlyph({ shown }: { readonly shown: readonly [Glyph, string?] | null }) {
  if (shown === null) return <span className="st" />;
  const [state, label] = shown;
  return <StateGlyph state={state} {...(label !== undefined && { label })} />;
}
