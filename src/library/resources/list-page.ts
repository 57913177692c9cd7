import type { TaskRecord, TaskRowRecord } from "../../model/task-record.ts";
import type { ListTasksParams, Storage } from "../../storage/storage.ts";

/** The approximate size of one page. A thousand of the largest tasks would not fit into memory. */
const PAGE_BYTES_MAX = 4 * 1_048_576;
/** How many are read at once: SQLite blocks the thread meanwhile. */
const SLICES = { tasks: 50, rows: 200 } as const;
/** After how many short reads a page is returned as it is, with the cursor to continue from. */
const SHORT_READS_MAX = 4;

export interface ListedPage<Item> {
  readonly items: readonly Item[];
  readonly nextCursor: number | null;
}

/** A page of at most `limit` tasks. It ends early if they are large, but after at least one, or if few of many match. */
export function listPage(storage: Storage, params: ListTasksParams): Promise<ListedPage<TaskRecord>> {
  return readPage(params, SLICES.tasks, async (slice) => {
    const { tasks: items, ...found } = await storage.tasks.list(slice);
    return { items, ...found };
  });
}

/** The same for rows, which are all small. */
export function listRowPage(storage: Storage, params: ListTasksParams): Promise<ListedPage<TaskRowRecord>> {
  return readPage(params, SLICES.rows, async (slice) => {
    const { rows: items, ...found } = await storage.tasks.listRows(slice);
    return { items, bytes: 0, ...found };
  });
}

/** Reads a page in slices, between which other work gets its turn. */
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
    const position = cursor === undefined ? {} : { cursor };
    const slice = await read({ ...params, ...position, limit, bytesMax: PAGE_BYTES_MAX - bytes });
    bytes += slice.bytes;
    // A read returns at least one task, even if there was no room for it.
    if (bytes > PAGE_BYTES_MAX && items.length > 0) return { items, nextCursor: cursor ?? null };
    items.push(...slice.items);
    if (slice.items.length < limit) short += 1;
    const isEnough = items.length === params.limit || bytes >= PAGE_BYTES_MAX || short === SHORT_READS_MAX;
    if (slice.nextCursor === null || isEnough) return { items, nextCursor: slice.nextCursor };
    cursor = slice.nextCursor;
    // SQLite reads on this thread: yield to other requests.
    await new Promise((resolve) => setImmediate(resolve));
  }
}
