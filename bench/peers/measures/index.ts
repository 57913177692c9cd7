import { addConcurrent, addMany, addOne, load } from "./add.ts";
import { drain, drainWindow } from "./drain.ts";
import { fairness } from "./fairness.ts";
import { idle } from "./idle.ts";
import { latency } from "./latency.ts";

export const MEASURES = {
  addOne,
  addConcurrent,
  addMany,
  load,
  drain,
  drainWindow,
  latency,
  idle,
  fairness,
} as const;

export type MeasureName = keyof typeof MEASURES;
