import type { ReactNode } from "react";
import { Fault, Loading, Stale } from "./notices.tsx";

interface ReadProps<Data> {
  readonly query: {
    readonly data: Data | undefined;
    readonly error: unknown;
    readonly refetch: () => unknown;
  };
  /** "The lanes": the subject of the sentence if they cannot be read. */
  readonly what: string;
  readonly children: (data: Data) => ReactNode;
}

/** What a query has read, also if it could not be refreshed; until then that it is being read, or why it could not be. */
export function Read<Data>({ query: { data, error, refetch }, what, children }: ReadProps<Data>) {
  const shared = { error, what, onRetry: () => void refetch() };
  if (data !== undefined) {
    return (
      <>
        <Stale {...shared} />
        {children(data)}
      </>
    );
  }
  if (error === null) return <Loading what={what.charAt(0).toLowerCase() + what.slice(1)} />;
  return <Fault {...shared} />;
}
