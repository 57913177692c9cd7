import { type ReactNode, useEffect, useState } from "react";
import { hasCode, sentenceOf } from "../api/errors.ts";
import { Icon } from "./icon.tsx";

interface EmptyProps {
  /** What is true: "No task matches". */
  readonly title: string;
  /** Why, in a sentence. */
  readonly children?: ReactNode;
  /** One action. */
  readonly action?: ReactNode;
}

/** A list with nothing in it says what is true, why, and what to do. */
export function Empty({ title, children, action }: EmptyProps) {
  return (
    <div className="empty">
      <h2>{title}</h2>
      {children !== undefined && <p>{children}</p>}
      {action}
    </div>
  );
}

/** What went wrong, where, and what to do. */
export function Fault({ error, what, onRetry }: { error: unknown; what: string; onRetry?: () => void }) {
  const isForbidden = hasCode(error, "forbidden");
  return (
    <div className="empty" role="alert">
      <h2>{isForbidden ? "Your key may not see this" : `${what} could not be read`}</h2>
      <p>{sentenceOf(error)}</p>
      {onRetry !== undefined && !isForbidden && (
        <button type="button" className="btn" onClick={onRetry}>
          <Icon name="retry" />
          Try again
        </button>
      )}
    </div>
  );
}

/** Nobody wants to see a sign that is gone at once. */
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
