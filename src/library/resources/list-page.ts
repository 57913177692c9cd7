import type { TaskRecord, TaskRowRecord } from "../../model/task-record.ts";
import type { ListTasksParams, Storage } from "../../storage/storage.ts";

/** What the tasks of one page may take together, about. A thousand of the largest would not fit into a process. */
const PAGE_BYTES_MAX = 4 * 1_048_576;
/** How many are read at once: on SQLite nothing else happens meanwhile. */
const SLICES = { tasks: 50, rows: 200 } as const;
/** How often a page that is still short is looked for among more tasks. What it has is returned then, with where to go on. */
const SHORT_READS_MAX = 4;

export interface ListedPage<Item> {
  readonly items: readonly Item[];
  readonly nextCursor: number | null;
}

/** A page of at most `limit` tasks that ends earlier when they are large, after one at least, or hard to find. */
export function listPage(storage: Storage, params: ListTasksParams): Promise<ListedPage<TaskRecord>> {
  return readPage(params, SLICES.tasks, async (slice) => {
    const { tasks: items, ...found } = await storage.tasks.list(slice);
    return { items, ...found };
  });
}

/** The same of rows, which are all small. */
export function listRowPage(storage: Storage, params: ListTasksParams): Promise<ListedPage<TaskRowRecord>> {
  return readPage(params, SLICES.rows, async (slice) => {
    const { rows: items, ...found } = await storage.tasks.listRows(slice);
    return { items, bytes: 0, ...found };
  });
}

/** Reads a page in slices, and lets everything else have its turn between them. */
async function readPage<Item>(
  params: ListTasksParams,
  sliceMax: number,
  read: (params: ListTasksParams) => Promise<ListedPage<Item> & { readonly bytes: number }>,
): Promise<ListedPage<Item>> {
  const items: Item[] = [];
  let bytes = 0;
  let { cursor } = params;
  for (let short = 0; ; ) {
    const limit = Math.min(params.limit - items.length, sliceMax);
    const place = cursor === undefined ? {} : { cursor };
    const slice = await read({ ...params, ...place, limit, bytesMax: PAGE_BYTES_MAX - bytes });
    bytes += slice.bytes;
    // One is always read, whatever room there was.
    if (bytes > PAGE_BYTES_MAX && items.length > 0) return { items, nextCursor: cursor ?? null };
    items.push(...slice.items);
    if (slice.items.length < limit) short += 1;
    const isEnough = items.length === params.limit || bytes >= PAGE_BYTES_MAX || short === SHORT_READS_MAX;
    if (slice.nextCursor === null || isEnough) return { items, nextCursor: slice.nextCursor };
    cursor = slice.nextCursor;
    // SQLite reads on this thread: other requests want their turn.
    await new Promise((resolve) => setImmediate(resolve));
  }
}
