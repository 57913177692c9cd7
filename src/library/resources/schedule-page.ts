import type { ParsedScheduleFilter } from "../../schedules/run-filter-input.ts";
import type { ScheduleCursor } from "../../schedules/schedule-cursor.ts";
import { largeBytesOf } from "../../storage/lazy-json.ts";
import {
  type ListSchedulesParams,
  SCHEDULE_PAGE_BYTES,
  type ScheduleRecord,
  type Storage,
} from "../../storage/storage.ts";

export interface SchedulePage {
  readonly found: readonly ScheduleRecord[];
  /** Where the next page begins; null: this is the last. */
  readonly next: ScheduleCursor | null;
}

/** A page of schedules: the first page by last change, the others by id without the schedules of the first. */
export async function schedulePage(
  storage: Storage,
  tenant: string,
  { cursor, limit, ...wanted }: ParsedScheduleFilter,
): Promise<SchedulePage> {
  if (cursor === undefined) {
    const { read, isMore } = await readSome(storage, { tenant, ...wanted, limit: limit + 1 });
    const found = read.slice(0, limit);
    const isLast = !isMore && read.length === found.length;
    return { found, next: isLast ? null : { below: null, shown: found.map(({ id }) => id) } };
  }
  const shown = new Set(cursor.shown);
  const { read, isMore } = await readSome(storage, {
    tenant,
    ...wanted,
    below: cursor.below ?? Number.MAX_SAFE_INTEGER,
    limit: limit + shown.size + 1,
  });
  const fresh = read.filter(({ id }) => !shown.has(id));
  const found = fresh.slice(0, limit);
  const below = fresh.length > found.length ? found.at(-1)?.id : isMore ? read.at(-1)?.id : undefined;
  if (below === undefined) return { found, next: null };
  return { found, next: { below, shown: cursor.shown.filter((id) => id < below) } };
}

/** Reads fewer schedules if they are large. `isMore`: then there may be more, however few were read. */
async function readSome(
  storage: Storage,
  params: ListSchedulesParams,
): Promise<{ readonly read: readonly ScheduleRecord[]; readonly isMore: boolean }> {
  const records = await storage.schedules.list({ ...params, bytesMax: SCHEDULE_PAGE_BYTES });
  const isMore = records.reduce((sum, each) => sum + largeBytesOf(each), 0) > SCHEDULE_PAGE_BYTES;
  // The last one made them too large together.
  return { read: isMore && records.length > 1 ? records.slice(0, -1) : records, isMore };
}
