import { formatCount } from "./format.ts";

interface NewPillProps {
  readonly count: number;
  /** There are changes that are not counted. */
  readonly isOutdated: boolean;
  readonly onShow: () => void;
}

/** Over a list that does not move while it is read: how many rows have come, and a click that shows them. */
export function NewPill({ count, isOutdated, onShow }: NewPillProps) {
  if (count === 0 && !isOutdated) return null;
  return (
    <button type="button" className="pill-new" onClick={onShow}>
      {count === 0 ? "Show changes" : `${formatCount(count)} new`}
    </button>
  );
}
