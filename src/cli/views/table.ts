import { cut, displayWidth, pad } from "../terminal/display-text.ts";
import { styled } from "../terminal/style.ts";

export interface Column {
  readonly title: string;
  readonly align?: "left" | "right";
  /** Gives way when the lines are too wide, down to so many columns; the texts must have no styles. */
  readonly shrinksTo?: number;
  /** How a cell looks once it has its width. */
  readonly style?: (text: string) => string;
}

const GAP = "  ";

/**
 * Lines of a table whose columns are as wide as what is in them. With a width, columns that may shrink do, the last
 * first, and what still does not fit is left to the terminal.
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
