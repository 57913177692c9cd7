import { useSession } from "../../api/session.tsx";
import { useLiveState } from "../../live/live.tsx";
import { useQuery } from "../../queries/use-query.ts";

/** Workers come and go without events of tasks. */
const EVERY_MS = 5_000;

/** All workers of the tenant. */
export function useWorkers() {
  const { client } = useSession();
  const { isPaused } = useLiveState();
  return useQuery({
    queryKey: ["workers"],
    queryFn: ({ signal }) => client.workers.list({ signal }),
    refetchInterval: isPaused ? false : EVERY_MS,
    meta: { live: () => false },
  });
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
