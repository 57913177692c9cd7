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

export interface WaitingReason {
  readonly code: string;
  readonly lane?: string;
  readonly agentId?: string;
  readonly count: number;
}

export interface WaitingReasons {
  readonly reasons: readonly WaitingReason[];
  readonly total: number;
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

export interface TaskLog {
  readonly attempt: number | null;
  readonly lines: readonly {
    readonly n: number;
    readonly at: string;
    readonly level: string;
    readonly text: string;
  }[];
  readonly dropped: number;
}
