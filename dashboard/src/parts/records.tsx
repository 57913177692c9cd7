import { type CSSProperties, type ReactNode, useRef, useState } from "react";
import { useKeys } from "../keys/use-keys.ts";
import { ShowMore } from "./notices.tsx";
import { Link, useLocation } from "./router.tsx";
import "./records.css";
import { useRowsOnScreen } from "./use-rows-on-screen.ts";

export interface Column<Row> {
  readonly head: string;
  /** Its track: `6rem`, or `minmax(8rem, 1fr)`. */
  readonly width: string;
  readonly cell: (row: Row) => ReactNode;
  readonly className?: string;
  /** Where it is on a phone: the name, beside it, or below it. Left out: it is hidden there. */
  readonly phone?: "main" | "side" | "below";
  /** Whether it is hidden on a narrow screen, too. */
  readonly isWide?: boolean;
}

interface RecordsProps<Row> {
  readonly label: string;
  readonly columns: readonly Column<Row>[];
  readonly rows: readonly Row[];
  readonly keyOf: (row: Row) => string | number;
  /** What a click on the row opens. */
  readonly href?: (row: Row) => string | undefined;
  /** Buttons at the end of the row. */
  readonly actions?: ((row: Row) => ReactNode) | undefined;
  /** The track of the buttons. */
  readonly actionsWidth?: string;
  /** Loads the next page. Left out: there is none. */
  readonly onMore?: (() => unknown) | undefined;
  readonly isFetching?: boolean;
}

/** A list of any length, of which only the rows on the screen are drawn. `j` and `k` move, `enter` opens. */
export function Records<Row>(props: RecordsProps<Row>) {
  const {
    label,
    columns,
    rows,
    keyOf,
    href,
    actions,
    actionsWidth = "7rem",
    onMore,
    isFetching = false,
  } = props;
  const box = useRef<HTMLDivElement>(null);
  const { from, to, rowPx, scrollTo } = useRowsOnScreen(box, rows.length);
  const [cursorKey, setCursorKey] = useState<string | number>();
  const [, navigate] = useLocation();
  const cursor = cursorKey === undefined ? -1 : rows.findIndex((row) => keyOf(row) === cursorKey);
  const move = (step: number) => {
    const next = Math.max(0, Math.min(rows.length - 1, cursor + step));
    const row = rows[next];
    if (row === undefined) return;
    setCursorKey(keyOf(row));
    scrollTo(next);
  };
  const current = rows[cursor];
  const target = current === undefined ? undefined : href?.(current);
  useKeys({
    j: () => move(1),
    k: () => move(-1),
    ...(target !== undefined && { enter: () => navigate(target) }),
  });
  const tracks = (all: readonly Column<Row>[]) =>
    [...all.map(({ width }) => width), ...(actions === undefined ? [] : [actionsWidth])].join(" ");
  const style = { "--cols-w": tracks(columns), "--cols-m": tracks(columns.filter(({ isWide }) => !isWide)) };
  return (
    <>
      <div
        className="list rec"
        role="table"
        aria-label={label}
        aria-rowcount={onMore === undefined ? rows.length + 1 : -1}
        style={style as CSSProperties}
      >
        <div className="lhead" role="row">
          {columns.map((column) => (
            <span key={column.head} role="columnheader" className={classOf(column)}>
              {column.head}
            </span>
          ))}
          {actions !== undefined && (
            <span role="columnheader">
              <span className="vh">Actions</span>
            </span>
          )}
        </div>
        <div className="lbody" role="rowgroup" ref={box} style={{ height: rows.length * rowPx }}>
          {rows.slice(from, to).map((row, index) => {
            const at = from + index;
            const link = href?.(row);
            return (
              <div
                key={keyOf(row)}
                className="lrow"
                role="row"
                aria-rowindex={at + 2}
                data-cursor={at === cursor ? "" : undefined}
                style={{ transform: `translateY(${at * rowPx}px)` }}
              >
                {columns.map((column) => (
                  <span key={column.head} role="cell" className={classOf(column)}>
                    {column.phone === "main" && link !== undefined ? (
                      <Link className="main-link name" href={link}>
                        {column.cell(row)}
                      </Link>
                    ) : (
                      column.cell(row)
                    )}
                  </span>
                ))}
                {actions !== undefined && (
                  <span role="cell" className="acts over">
                    {actions(row)}
                  </span>
                )}
              </div>
            );
          })}
        </div>
      </div>
      {onMore !== undefined && (
        <p className="list-end">
          <ShowMore isFetching={isFetching} onMore={onMore} />
        </p>
      )}
    </>
  );
}

function classOf<Row>({ className = "", phone, isWide = false }: Column<Row>): string {
  return `${className} ${phone === undefined ? "" : `p-${phone}`} ${isWide ? "c-w" : ""}`;
}
