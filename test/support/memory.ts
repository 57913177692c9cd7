import { RunningBytes } from "../../src/engine/work/running-bytes.ts";

/** Counts what running tasks hold, and lets them hold any number of bytes. */
export function unboundedMemory(): RunningBytes {
  return new RunningBytes({ max: () => 0, tenantShare: () => null, running: () => 0, onRoom: () => {} });
}
