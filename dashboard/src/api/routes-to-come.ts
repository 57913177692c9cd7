import { useSession } from "./session.tsx";

/** Routes that the client has no methods for yet. */
export function useAsk(): <Answer>(path: string, signal: AbortSignal) => Promise<Answer> {
  const { client, key } = useSession();
  return async (path, signal) => {
    const headers = key === undefined ? {} : { authorization: `Bearer ${key}` };
    const response = await fetch(client.url + path, { signal, headers });
    const answer = await response.json();
    if (!response.ok) throw new Error(answer.error);
    return answer;
  };
}

export interface Series {
  readonly from: string;
  readonly step: number;
  readonly series: readonly {
    readonly key: string;
    readonly metric: string;
    readonly points: readonly (number | null | { readonly p50: number; readonly p95: number })[];
  }[];
}
