import type { ParsedScheduleFilter } from "../../schedules/run-filter-input.ts";
import type { ScheduleCursor } from "../../schedules/schedule-cursor.ts";
import type { ScheduleRecord, Storage } from "../../storage/storage.ts";

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
    const records = await storage.schedules.list({ tenant, ...wanted, limit: limit + 1 });
    const found = records.slice(0, limit);
    const isLast = records.length === found.length;
    return { found, next: isLast ? null : { below: null, shown: found.map(({ id }) => id) } };
  }
  const shown = new Set(cursor.shown);
  const records = await storage.schedules.list({
    tenant,
    ...wanted,
    below: cursor.below ?? Number.MAX_SAFE_INTEGER,
    limit: limit + shown.size + 1,
  });
  const fresh = records.filter(({ id }) => !shown.has(id));
  const found = fresh.slice(0, limit);
  const below = found.at(-1)?.id;
  if (below === undefined || fresh.length === found.length) return { found, next: null };
  return { found, next: { below, shown: cursor.shown.filter((id) => id < below) } };
}
