import type { ReactNode } from "react";
import { Fault, Loading } from "./notices.tsx";

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

/** What a query has read; until then that it is being read, or why it could not be. */
export function Read<Data>({ query: { data, error, refetch }, what, children }: ReadProps<Data>) {
  if (data !== undefined) return children(data);
  if (error === null) return <Loading what={what.charAt(0).toLowerCase() + what.slice(1)} />;
  return <Fault error={error} what={what} onRetry={() => void refetch()} />;
}
