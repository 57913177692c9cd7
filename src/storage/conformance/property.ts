import type { StorageHarness } from "./world.ts";
export function describeProperties(_harness: StorageHarness): void {}
