import { describeStorage } from "../conformance/index.ts";
import { openOracle } from "./connection/open.ts";

describeStorage("the oracle", {
  capabilities: { durable: false, exclusive: true, claimsAhead: false },
  nodesDiffer: true,
  propertyRuns: 20,
  async open(clock) {
    const storage = openOracle({ clock });
    return { storage, dispose: () => storage.close() };
  },
});
