import { describe, expect, test } from "vitest";
import { TASK_LOG_MAX } from "../../../model/task-log.ts";
import { LOG_PIECE_MAX, type LogPiece } from "../../storage.ts";
import { type OpenWorld, TENANT, type World } from "../world.ts";

export function describeTaskLogs(open: OpenWorld): void {
  describe("task logs", () => {
    /** The lines of one attempt from one number to another, in pieces of `size`. */
    function piecesOf(
      { taskSeq, attempt = 1 }: { taskSeq: number; attempt?: number },
      { from = 1, to, size = 100, bytes = 10 }: { from?: number; to: number; size?: number; bytes?: number },
    ): LogPiece[] {
      const pieces: LogPiece[] = [];
      for (let first = from; first <= to; first += size) {
        const lastN = Math.min(first + size - 1, to);
        const count = lastN - first + 1;
        const lines = Array.from({ length: count }, (_, index) => ({
          at: 1_000 + first + index,
          level: "info" as const,
          text: `line ${first + index}`,
        }));
        pieces.push({ taskSeq, attempt, lastN, bytes: count * bytes, lines });
      }
      return pieces;
    }

    async function seqOf(world: World, id: string): Promise<number> {
      return (await world.task(id)).seq;
    }

    const read = { tenant: TENANT, taskId: "a", after: 0, limit: 10_000 };

    test("are read in order, from any line on, with their numbers", async () => {
      const world = await open();
      const { logs } = world.storage;
      await world.submit({ id: "a" });
      expect(await logs.read(read)).toEqual({ attempt: null, lines: [], dropped: 0, more: false });
      const taskSeq = await seqOf(world, "a");
      const lines = [
        { at: 5, level: "warn", text: 'it says "ä\n"' },
        { at: 7, level: "error", text: "" },
      ] as const;
      await logs.append({ pieces: [{ taskSeq, attempt: 1, lastN: 2, bytes: 20, lines }] });
      await logs.append({ pieces: piecesOf({ taskSeq }, { from: 3, to: 7, size: 2 }) });
      const page = await logs.read(read);
      expect(page?.lines.slice(0, 3)).toEqual([
        { n: 1, ...lines[0] },
        { n: 2, ...lines[1] },
        { n: 3, at: 1_003, level: "info", text: "line 3" },
      ]);
      expect(page).toMatchObject({ attempt: 1, dropped: 0, more: false });
      for (let after = 0; after < 9; after += 1) {
        const some = await logs.read({ ...read, after, limit: 2 });
        const rest = page?.lines.slice(after) ?? [];
        expect(some).toEqual({ attempt: 1, lines: rest.slice(0, 2), dropped: 0, more: rest.length > 2 });
      }
    });

    test("are kept of the last attempts alone, so that retries do not add up", async () => {
      const world = await open();
      const { logs } = world.storage;
      await world.submit({ id: "a" });
      const taskSeq = await seqOf(world, "a");
      const attempts = TASK_LOG_MAX.attempts + 2;
      for (let attempt = 1; attempt <= attempts; attempt += 1) {
        await logs.append({ pieces: piecesOf({ taskSeq, attempt }, { to: 1 }) });
      }
      // Written late, by a slow node.
      await logs.append({ pieces: piecesOf({ taskSeq, attempt: 1 }, { from: 2, to: 2 }) });
      const kept: number[] = [];
      for (let attempt = 1; attempt <= attempts; attempt += 1) {
        if ((await logs.read({ ...read, attempt }))?.lines.length === 1) kept.push(attempt);
      }
      expect(kept).toEqual(Array.from({ length: TASK_LOG_MAX.attempts }, (_, index) => index + 3));
    });

    test("are kept for each attempt: the newest that logged is read, or the one asked for", async () => {
      const world = await open();
      const { logs } = world.storage;
      await world.submit({ id: "a" }, { id: "b" });
      const [a, b] = [await seqOf(world, "a"), await seqOf(world, "b")];
      const pieces = [
        ...piecesOf({ taskSeq: a }, { to: 3 }),
        ...piecesOf({ taskSeq: b }, { to: 5 }),
        ...piecesOf({ taskSeq: a, attempt: 4 }, { to: 1 }),
      ];
      await logs.append({ pieces });
      const counted = async (params: object) => {
        const page = await logs.read({ ...read, ...params });
        return [page?.attempt, page?.lines.length];
      };
      expect(await counted({})).toEqual([4, 1]);
      expect(await counted({ attempt: 1 })).toEqual([1, 3]);
      expect(await counted({ attempt: 2 })).toEqual([2, 0]);
      expect(await counted({ taskId: "b" })).toEqual([1, 5]);
      expect(await logs.read({ ...read, tenant: "other" })).toBeNull();
      expect(await logs.read({ ...read, taskId: "unknown" })).toBeNull();
    });

    test.each([
      ["lines", { to: TASK_LOG_MAX.lines + 250, bytes: 1 }],
      ["bytes", { to: 500, bytes: 1_024, size: 16 }],
    ])("of an attempt with too many %s lose the oldest, and say how many", async (_what, params) => {
      const world = await open();
      const { logs } = world.storage;
      await world.submit({ id: "a" });
      const taskSeq = await seqOf(world, "a");
      const pieces = piecesOf({ taskSeq }, params);
      for (let at = 0; at < pieces.length; at += 3) await logs.append({ pieces: pieces.slice(at, at + 3) });
      const page = await logs.read(read);
      const kept = page?.lines ?? [];
      expect(kept.length).toBeLessThanOrEqual(TASK_LOG_MAX.lines);
      expect(kept.length * params.bytes).toBeLessThanOrEqual(TASK_LOG_MAX.bytes);
      const most = Math.min(TASK_LOG_MAX.lines, Math.floor(TASK_LOG_MAX.bytes / params.bytes));
      expect(kept.length).toBeGreaterThan(most - LOG_PIECE_MAX.lines - 1);
      expect(page?.dropped).toBe(params.to - kept.length);
      expect(kept.map(({ n }) => n)).toEqual(kept.map((_, index) => params.to - kept.length + 1 + index));
    });

    test("are not changed by what is written once more", async () => {
      const world = await open();
      const { logs } = world.storage;
      await world.submit({ id: "a" });
      const pieces = piecesOf({ taskSeq: await seqOf(world, "a") }, { to: 20, size: 7 });
      await logs.append({ pieces });
      const page = await logs.read(read);
      await logs.append({ pieces: pieces.slice(1) });
      expect(await logs.read(read)).toEqual(page);
    });

    test("go with their task, and none is kept for one that is gone", async () => {
      const world = await open();
      const { logs, tasks } = world.storage;
      await world.submit({ id: "a" });
      const taskSeq = await seqOf(world, "a");
      await logs.append({ pieces: piecesOf({ taskSeq }, { to: 3 }) });
      await tasks.cancel({ tenant: TENANT, ids: ["a"], error: null });
      expect(await logs.read(read)).toMatchObject({ lines: { length: 3 } });
      world.clock.step(10_000);
      await tasks.prune({ retentionMs: 1_000, rejectedMax: 10, limit: 100 });
      expect(await logs.read(read)).toBeNull();
      await world.submit({ id: "b" });
      const pieces = [
        ...piecesOf({ taskSeq }, { from: 4, to: 5 }),
        ...piecesOf({ taskSeq: await seqOf(world, "b") }, { to: 1 }),
      ];
      await logs.append({ pieces });
      expect(await logs.read({ ...read, taskId: "b" })).toMatchObject({ lines: { length: 1 } });
      expect(await logs.read(read)).toBeNull();
    });
  });
}
