import { cut, displayWidth, pad } from "../terminal/display-text.ts";
import { styled } from "../terminal/style.ts";

export interface Column {
  readonly title: string;
  readonly align?: "left" | "right";
  /** Shrinks to this many columns when lines are too wide. The texts must have no styles. */
  readonly shrinksTo?: number;
  /** Styles a cell once it has its width. */
  readonly style?: (text: string) => string;
}

const GAP = "  ";

/**
 * The lines of a table whose columns are as wide as their contents. With a width, columns that may shrink do so, the last first.
 * The terminal wraps what still does not fit.
 */
export function tableLines(
  columns: readonly Column[],
  rows: readonly (readonly string[])[],
  { width }: { readonly width?: number | undefined } = {},
): string[] {
  const widths = columns.map(({ title }, index) =>
    Math.max(displayWidth(title), ...rows.map((row) => displayWidth(row[index] ?? ""))),
  );
  if (width !== undefined) shrink(widths, columns, width);

  const line = (cells: readonly string[], look: (text: string, column: Column) => string): string =>
    columns
      .map((column, index) => {
        const room = widths[index] ?? 0;
        const text = column.shrinksTo === undefined ? (cells[index] ?? "") : cut(cells[index] ?? "", room);
        return pad(look(text, column), room, column.align);
      })
      .join(GAP)
      .trimEnd();
  return [
    line(
      columns.map(({ title }) => title),
      (text) => styled("bold", text),
    ),
    ...rows.map((row) => line(row, (text, { style }) => style?.(text) ?? text)),
  ];
}

function shrink(widths: number[], columns: readonly Column[], width: number): void {
  let excess = widths.reduce((sum, columnWidth) => sum + columnWidth + GAP.length, -GAP.length) - width;
  for (let index = columns.length - 1; index >= 0 && excess > 0; index--) {
    const { shrinksTo } = columns[index] as Column;
    const room = widths[index] ?? 0;
    if (shrinksTo === undefined) continue;
    const less = Math.min(excess, Math.max(room - shrinksTo, 0));
    widths[index] = room - less;
    excess -= less;
  }
}
