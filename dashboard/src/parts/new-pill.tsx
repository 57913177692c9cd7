import { formatCount } from "./format.ts";

/** Over a list that does not move while it is read: how many rows have come, and a click that shows them. */
export function NewPill({ count, onShow }: { readonly count: number; readonly onShow: () => void }) {
  if (count === 0) return null;
  return (
    <button type="button" className="pill-new" onClick={onShow}>
      {formatCount(count)} new
    </button>
  );
}
