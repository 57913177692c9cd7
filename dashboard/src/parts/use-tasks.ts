import type { RotaEvent, Task } from "../../../src/client/index.ts";
import { useSession } from "../api/session.tsx";
import { useQuery } from "../queries/use-query.ts";

/** Some tasks by their ids, in that order. Undefined: it is not kept, or not read yet. */
export function useTasks(ids: readonly string[]): readonly (Task | undefined)[] {
  const { client } = useSession();
  const { data } = useQuery({
    queryKey: ["tasks", "named", ids],
    // One that is no longer kept does not hide the others.
    queryFn: ({ signal }) =>
      Promise.all(ids.map((id) => client.tasks.get(id, { signal }).catch(() => undefined))),
    enabled: ids.length > 0,
    meta: { live: ({ taskId, type }: RotaEvent) => ids.includes(taskId) && type !== "task.progress" },
  });
  return data ?? [];
}
