import { mkdirSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { BEHAVIOURS, type Behaviour } from "./behaviours.ts";
import { Bench, type BenchOptions, Misbehaviour } from "./bench.ts";

export interface ConformanceOptions extends Omit<BenchOptions, "folder"> {
  /** The numbers of the behaviours to check. Default: all. */
  readonly only?: readonly number[];
  /** How many workers run at once, each with a server of its own. */
  readonly atOnce: number;
  readonly onChecked?: (checked: CheckedBehaviour) => void;
  readonly signal?: AbortSignal;
}

export interface CheckedBehaviour {
  readonly number: number;
  readonly title: string;
  readonly ok: boolean;
  /** What the worker did instead. */
  readonly why?: string;
  /** The end of what the worker wrote, if it did not behave. */
  readonly output?: string;
}

/** Holds a worker to every behaviour, each with a new process and a new server. The results are in order. */
export async function runConformance(options: ConformanceOptions): Promise<CheckedBehaviour[]> {
  const { only, atOnce, onChecked, signal } = options;
  const chosen = BEHAVIOURS.filter(({ number }) => only === undefined || only.includes(number));
  const root = mkdtempSync(join(tmpdir(), "rota-worker-conformance-"));
  const results: CheckedBehaviour[] = [];
  const left = [...chosen];
  const checkNext = async (): Promise<void> => {
    for (let next = left.shift(); next !== undefined && !signal?.aborted; next = left.shift()) {
      const folder = join(root, String(next.number));
      mkdirSync(folder);
      const checked = await check(next, { ...options, folder });
      results.push(checked);
      onChecked?.(checked);
    }
  };
  try {
    await Promise.all(Array.from({ length: atOnce }, checkNext));
  } finally {
    rmSync(root, { recursive: true, force: true });
  }
  return results.sort((a, b) => a.number - b.number);
}

async function check({ number, title, check }: Behaviour, options: BenchOptions): Promise<CheckedBehaviour> {
  const bench = new Bench(options);
  try {
    await check(bench);
    return { number, title, ok: true };
  } catch (error) {
    if (!(error instanceof Misbehaviour)) throw error;
    return { number, title, ok: false, why: error.message, output: bench.worker.output };
  } finally {
    await bench.end();
  }
}
