import { useMemo } from "react";
import type { RotaEvent, Task, TaskPage } from "../../../../src/client/index.ts";
import { useSession } from "../../api/session.tsx";
import type { InfiniteData } from "../../queries/query.ts";
import { useInfiniteQuery } from "../../queries/use-query.ts";
import { patchTask } from "../tasks/patch-rows.ts";

const PAGE_TASKS = 50;

export interface Transcript {
  /** In the order in which they were accepted. */
  readonly tasks: readonly Task[];
  readonly error: Error | null;
  readonly isLoading: boolean;
  readonly hasEarlier: boolean;
  readonly loadEarlier: () => Promise<unknown>;
  readonly reload: () => void;
}

/** The messages of a session and their results: the last ones, and earlier ones on request. */
export function useTranscript(key: string): Transcript {
  const { client } = useSession();
  const { data, error, isPending, hasNextPage, fetchNextPage, refetch } = useInfiniteQuery({
    queryKey: ["transcript", key],
    queryFn: ({ pageParam, signal }) =>
      client.tasks.list(
        { sessionKey: key, limit: PAGE_TASKS, ...(pageParam === undefined ? {} : { cursor: pageParam }) },
        { signal },
      ),
    initialPageParam: undefined as string | undefined,
    getNextPageParam: ({ nextCursor }) => nextCursor ?? undefined,
    meta: {
      live: ({ sessionKey, type }) => sessionKey === key && type !== "task.progress",
      patch: patchMessages,
    },
  });
  const tasks = useMemo(() => data?.pages.flatMap((page) => page.tasks).toReversed() ?? [], [data]);
  return {
    tasks,
    error: data === undefined ? error : null,
    isLoading: isPending,
    hasEarlier: hasNextPage,
    loadEarlier: fetchNextPage,
    reload: () => void refetch(),
  };
}

type Pages = InfiniteData<TaskPage>;

/** Applies events at once: a reply need not wait for the refetch. */
function patchMessages(data: Pages, events: readonly RotaEvent[]): Pages {
  const known = new Set(data.pages.flatMap(({ tasks }) => tasks.map(({ taskId }) => taskId)));
  const changes = events.filter(
    ({ type, taskId }) => known.has(taskId) && type !== "batch.completed" && type !== "task.created",
  );
  if (changes.length === 0) return data;
  const patched = (task: Task) =>
    changes.filter(({ taskId }) => taskId === task.taskId).reduce(patchMessage, task);
  return { ...data, pages: data.pages.map((page) => ({ ...page, tasks: page.tasks.map(patched) })) };
}

function patchMessage(task: Task, event: RotaEvent): Task {
  const { type, result } = event;
  return {
    ...patchTask(task, event),
    ...(type === "task.completed" && result !== undefined ? { result } : {}),
  };
}
