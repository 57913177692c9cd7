import type { TaskRecord } from "../model/task-record.ts";
import type { ListTasksParams, Storage } from "../storage/storage.ts";

/** What the tasks of one page may take together, about. A thousand of the largest would not fit into a process. */
const PAGE_BYTES_MAX = 4 * 1_048_576;
/** How many are read before anything is known of their size. */
const FIRST_SLICE = 4;
/** How many are read at once, however small those before were: behind many small ones there can be as many large ones. */
const SLICE_MAX = 32;

/**
 * A page of at most `limit` tasks that ends earlier when they are large, after one at least. It is read in slices, each
 * as large as those before it allow.
 */
export async function listPage(
  storage: Storage,
  params: ListTasksParams,
): Promise<{ tasks: TaskRecord[]; nextCursor: number | null }> {
  const page: TaskRecord[] = [];
  let bytes = 0;
  let { cursor } = params;
  for (;;) {
    const limit = Math.min(params.limit - page.length, sliceSize(page.length, bytes));
    const slice = await storage.tasks.list({ ...params, limit, ...(cursor === undefined ? {} : { cursor }) });
    for (const task of slice.tasks) {
      bytes += bytesOf(task);
      if (bytes > PAGE_BYTES_MAX && page.length > 0)
        return { tasks: page, nextCursor: page.at(-1)?.seq ?? null };
      page.push(task);
    }
    if (slice.nextCursor === null || page.length === params.limit || bytes > PAGE_BYTES_MAX) {
      return { tasks: page, nextCursor: slice.nextCursor };
    }
    cursor = slice.nextCursor;
    // SQLite reads on this thread: other requests want their turn.
    await new Promise((resolve) => setImmediate(resolve));
  }
}

/** As many as would fit if they were like those before; one when there is hardly any room left. */
function sliceSize(tasks: number, bytes: number): number {
  if (tasks === 0) return FIRST_SLICE;
  const fitting = Math.floor((PAGE_BYTES_MAX - bytes) / (bytes / tasks));
  return Math.min(Math.max(fitting, 1), SLICE_MAX);
}

function bytesOf({ spec, result }: TaskRecord): number {
  return JSON.stringify(spec).length + (result === undefined ? 0 : JSON.stringify(result).length);
}
