import { type RefObject, useEffect, useLayoutEffect, useState } from "react";

/** The assumed height until a row has been measured. */
const ROW_PX = 34;
/** Rows drawn beyond the visible ones on both sides, so that scrolling shows no empty space. */
const SPARE_ROWS = 8;
/** The height of the fixed bars at the top (bar and list header) and at the bottom (tabs on a phone). */
const COVERED_PX = { top: 84, bottom: 64 } as const;

export interface RowsOnScreen {
  /** The first row that is drawn, and the first one after that which is not. */
  readonly from: number;
  readonly to: number;
  /** All rows have the same height. */
  readonly rowPx: number;
  readonly scrollTo: (index: number) => void;
}

/**
 * Which rows of a list of any length are on the screen. They are the children of `box`, which is as high as all rows together.
 */
export function useRowsOnScreen(box: RefObject<HTMLElement | null>, count: number): RowsOnScreen {
  const [view, setView] = useState({ from: 0, to: 0, rowPx: ROW_PX });
  const look = () => {
    if (box.current === null) return;
    const rowPx = box.current.firstElementChild?.getBoundingClientRect().height || ROW_PX;
    const above = -box.current.getBoundingClientRect().top;
    const from = Math.max(0, Math.floor(above / rowPx) - SPARE_ROWS);
    const to = Math.min(count, Math.ceil((above + innerHeight) / rowPx) + SPARE_ROWS);
    setView((before) =>
      before.from === from && before.to === to && before.rowPx === rowPx ? before : { from, to, rowPx },
    );
  };
  useLayoutEffect(look);
  // biome-ignore lint/correctness/useExhaustiveDependencies: the callback reads the current values when it runs.
  useEffect(() => {
    addEventListener("scroll", look, { passive: true });
    addEventListener("resize", look);
    return () => {
      removeEventListener("scroll", look);
      removeEventListener("resize", look);
    };
  }, [count]);
  return {
    ...view,
    to: Math.min(view.to, count),
    scrollTo: (index) => {
      const top = (box.current?.getBoundingClientRect().top ?? 0) + index * view.rowPx;
      const below = top + view.rowPx + COVERED_PX.bottom - innerHeight;
      scrollBy({ top: Math.max(0, below) + Math.min(0, top - COVERED_PX.top), behavior: "instant" });
    },
  };
}
