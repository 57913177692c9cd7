import { openMemory } from "../../../test/support/storages.ts";
import { describeStorage } from "../conformance/index.ts";

describeStorage("SQLite in memory", {
  capabilities: { durable: false, exclusive: true, claimsAhead: false },
  nodesDiffer: false,
  propertyRuns: 300,
  async open(clock) {
    const storage = await openMemory(clock, { enterEvery: 3 });
    return { storage, dispose: () => storage.close() };
  },
});
