import { setImmediate } from "node:timers/promises";
import type { Bulk, BulkPreview, BulkSample, LocalBulks } from "../../interface/bulks.ts";
import { BULK_TASK_STATES, BULKS_RUNNING_MAX } from "../../model/bulk.ts";
import { RotaError } from "../../model/errors.ts";
import { type ParsedBulk, parseBulkInput } from "../../model/input/bulk-input.ts";
import { looksLikeTaskId } from "../../model/task-id.ts";
import type { TaskRecord, TaskRowRecord } from "../../model/task-record.ts";
import { rfc3339 } from "../../model/text/rfc3339.ts";
import type { BulkRecord, BulkSelection, Storage } from "../../storage/storage.ts";
import type { CallerBounds } from "../caller-bounds.ts";
import { OneAtATime } from "../one-at-a-time.ts";

/** Tasks counted in one read. */
const COUNT_SLICE = 500;
const SAMPLE_MAX = 5;
/** Bulk actions of a tenant that are kept once they have ended. */
const KEPT_MAX = 100;

export interface BulksOptions {
  readonly tenant: string;
  readonly bounds: CallerBounds;
  readonly storage: Storage;
  readonly newBulkId: () => string;
  /** Throws while no tasks are accepted. */
  readonly checkOpen: () => void;
}

/** The bulk actions of one tenant. */
export function createBulks({ tenant, bounds, storage, newBulkId, checkOpen }: BulksOptions): LocalBulks {
  // Counting many tasks takes many reads: a tenant has one count at a time.
  const counts = new OneAtATime();

  async function find(parsed: ParsedBulk): Promise<Found> {
    return counts.run(() =>
      parsed.ids === null ? countSelected(parsed) : findNamed({ ...parsed, ids: parsed.ids }),
    );
  }

  async function countSelected({ selection, limit, action }: ParsedBulk): Promise<Found> {
    const sample: TaskRowRecord[] = [];
    const position: { cursor?: number } = {};
    let matched = 0;
    for (;;) {
      const wanted = Math.min(COUNT_SLICE, limit + 1 - matched);
      const params = { tenant, ...toSelection(action, selection), ...position, limit: wanted };
      const { rows, nextCursor } = await storage.tasks.listRows(params);
      sample.push(...rows.slice(0, SAMPLE_MAX - sample.length));
      matched += rows.length;
      if (nextCursor === null || matched > limit)
        return {
          matched: Math.min(matched, limit),
          capped: matched > limit,
          sample: sample.slice(0, limit),
          ids: null,
        };
      position.cursor = nextCursor;
      // SQLite reads on this thread: yield to other requests.
      await setImmediate();
    }
  }

  async function findNamed({ ids, action, limit }: ParsedBulk & { ids: readonly string[] }): Promise<Found> {
    const found: TaskRecord[] = [];
    const fitting: string[] = [];
    for (const [index, id] of ids.entries()) {
      if (index % 10 === 9) await setImmediate();
      const task = await storage.tasks.get({ tenant, id });
      if (task === null || !BULK_TASK_STATES[action].includes(task.state)) continue;
      if (fitting.length === limit) return { matched: limit, capped: true, sample: found, ids: fitting };
      if (found.length < SAMPLE_MAX) found.push(task);
      fitting.push(id);
    }
    return { matched: fitting.length, capped: false, sample: found, ids: fitting };
  }

  return {
    async preview(input) {
      const { matched, capped, sample } = await find(parseBulkInput(input));
      return { matched, capped, sample: sample.map(toSample) } satisfies BulkPreview;
    },

    async start(input, { by = null } = {}) {
      checkOpen();
      const parsed = parseBulkInput(input);
      const { action, limit, filter } = parsed;
      if (action === "retry") bounds.checkRetriesOfMany();
      const requestedAt = await storage.now();
      const newest = (await storage.tasks.listRows({ tenant, limit: 1 })).rows[0];
      const lastSeq = newest?.seq ?? 0;
      const { matched, ids } = await find(parsed);
      checkOpen();
      const selection = ids === null ? toSelection(action, parsed.selection) : null;
      const bulkId = newBulkId();
      const isAdded = await storage.bulks.add({
        id: bulkId,
        tenant,
        action,
        filter,
        selection,
        ids,
        limit,
        matched,
        lastSeq,
        cursor: selection?.order === "newest" ? lastSeq + 1 : 0,
        by,
        requestedAt,
        runningMax: BULKS_RUNNING_MAX,
        keptMax: KEPT_MAX,
      });
      if (!isAdded) throw tooMany();
      return { bulkId, matched };
    },

    async get(bulkId) {
      return toBulk(looksLikeTaskId(bulkId) ? await storage.bulks.get({ tenant, id: bulkId }) : null);
    },

    async abort(bulkId) {
      return toBulk(looksLikeTaskId(bulkId) ? await storage.bulks.abort({ tenant, id: bulkId }) : null);
    },
  };
}

interface Found extends Omit<BulkPreview, "sample"> {
  readonly sample: readonly (TaskRecord | TaskRowRecord)[];
  /** The tasks among `ids` that the action can act on; null: the request had no `ids`. */
  readonly ids: readonly string[] | null;
}

/**
 * Dependants are newer than their dependencies. `retry` starts with the oldest task, so that no task is blocked by a dependency
 * that is retried later. Other actions start with the newest, so that no dependant is cancelled before its own turn.
 */
function toSelection(action: BulkRecord["action"], selection: ParsedBulk["selection"]): BulkSelection {
  return { ...selection, order: action === "retry" ? "oldest" : "newest" };
}

function toSample({ id, agent, lane, state, createdAt }: TaskRecord | TaskRowRecord): BulkSample {
  return { taskId: id, agentId: agent, lane, state, createdAt: rfc3339(createdAt) };
}

function toBulk(record: BulkRecord | null): Bulk {
  if (record === null) throw new RotaError("not_found", "bulk action not found");
  const { id: bulkId, action, filter, matched, done, failed, skipped, state, by } = record;
  return { bulkId, action, filter, matched, done, failed, skipped, state, by };
}

function tooMany(): RotaError {
  return new RotaError(
    "conflict",
    `${BULKS_RUNNING_MAX} bulk actions run already, which is the limit: wait until one has ended, or abort one`,
  );
}
