import { describeStorage } from "./conformance/index.ts";
import { openSqlite } from "./sqlite/open.ts";

describeStorage("SQLite in memory", {
  capabilities: { durable: false, exclusive: true },
  nodesDiffer: false,
  propertyRuns: 300,
  async open(clock) {
    const storage = await openSqlite({ path: ":memory:", clock, enterEvery: 3 });
    return { storage, dispose: () => storage.close() };
  },
});
