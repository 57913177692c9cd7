import type { RotaClient, WorkerInfo, WorkerList } from "../../../../src/client/index.ts";
import { useSession } from "../../api/session.tsx";
import { useLiveState } from "../../live/live.tsx";
import { useQuery } from "../../queries/use-query.ts";

/** Workers come and go without events of tasks. */
const EVERY_MS = 5_000;

/** A tenant has up to two thousand workers, with those that are lost. */
const PAGE_MAX = 1_000;
const PAGES_MAX = 2;

/** All workers of the tenant. */
export function useWorkers() {
  const { client } = useSession();
  const { isPaused } = useLiveState();
  return useQuery({
    queryKey: ["workers"],
    queryFn: ({ signal }) => allWorkers(client, signal),
    refetchInterval: isPaused ? false : EVERY_MS,
    meta: { live: () => false },
  });
}

async function allWorkers(client: RotaClient, signal: AbortSignal): Promise<Pick<WorkerList, "workers">> {
  const workers: WorkerInfo[] = [];
  for (let page = 0, cursor: string | null | undefined; page < PAGES_MAX && cursor !== null; page += 1) {
    const read = await client.workers.list({ limit: PAGE_MAX, ...(cursor && { cursor }) }, { signal });
    workers.push(...read.workers);
    cursor = read.nextCursor;
  }
  return { workers };
}

/** One of them. Throws `unknown_worker`. */
export function useWorker(id: string) {
  const { client } = useSession();
  const { isPaused } = useLiveState();
  return useQuery({
    queryKey: ["workers", id],
    queryFn: ({ signal }) => client.workers.get(id, { signal }),
    refetchInterval: isPaused ? false : EVERY_MS,
    meta: { live: () => false },
  });
}
