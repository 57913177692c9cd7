import { type ReactNode, useEffect, useState } from "react";
import { hasCode, sentenceOf } from "../api/errors.ts";
import { Button } from "./button.tsx";
import { Coded } from "./coded.tsx";
import { countOf } from "./format.ts";

interface EmptyProps {
  /** The fact: "No task matches". */
  readonly title: string;
  /** The reason, in a sentence. */
  readonly children?: ReactNode;
  /** One action. */
  readonly action?: ReactNode;
}

/** An empty list: the fact, the reason, and what to do. */
export function Empty({ title, children, action }: EmptyProps) {
  return (
    <div className="empty">
      <h2>{title}</h2>
      {children !== undefined && <p>{children}</p>}
      {action}
    </div>
  );
}

interface NoMatchProps {
  /** The noun: "task". */
  readonly what: string;
  /** How many filters are set. */
  readonly filters: number;
  readonly onClear: () => void;
}

/** No entry matches the filters. */
export function NoMatch({ what, filters, onClear }: NoMatchProps) {
  return (
    <Empty title={`No ${what} matches`} action={<Button onClick={onClear}>Remove all filters</Button>}>
      {countOf(filters, "filter")} {filters === 1 ? "is" : "are"} on.
    </Empty>
  );
}

interface ShowMoreProps {
  readonly isFetching: boolean;
  readonly onMore: () => unknown;
}

/** The button below a list that has a further page. */
export function ShowMore({ isFetching, onMore }: ShowMoreProps) {
  return (
    <Button className="more-rows" disabled={isFetching} onClick={() => void onMore()}>
      Show more
    </Button>
  );
}

/** An error: what went wrong, where, and what to do. */
export function Fault({ error, what, onRetry }: { error: unknown; what: string; onRetry?: () => void }) {
  const isForbidden = hasCode(error, "forbidden");
  return (
    <div className="empty" role="alert">
      <h2>{isForbidden ? "Your key may not see this" : `${what} could not be read`}</h2>
      <p>
        <Coded text={sentenceOf(error)} />
      </p>
      {onRetry !== undefined && !isForbidden && (
        <Button icon="retry" onClick={onRetry}>
          Try again
        </Button>
      )}
    </div>
  );
}

/** Above data that is shown although it could not be read anew. */
export function Stale({ error, what, onRetry }: { error: unknown; what: string; onRetry: () => void }) {
  if (error === null) return null;
  return (
    <p className="notice" role="status">
      <span>
        {what} could not be refreshed: {sentenceOf(error)}
      </span>
      <button type="button" className="link" onClick={onRetry}>
        Try again
      </button>
    </p>
  );
}

/** Shorter requests show no indicator, which would only flicker. */
const LOADING_AFTER_MS = 300;

export function Loading({ what }: { readonly what: string }) {
  const [isShown, setShown] = useState(false);
  useEffect(() => {
    const timer = setTimeout(() => setShown(true), LOADING_AFTER_MS);
    return () => clearTimeout(timer);
  }, []);
  return (
    <div className="empty" role="status">
      {isShown && <p className="muted">Reading {what} …</p>}
    </div>
  );
}
