import { describe, expect, test } from "vitest";
import { describeAdmission } from "./admission.ts";
import { describeAgents } from "./agents.ts";
import { describeCancelTasks } from "./cancel-tasks.ts";
import { describeClaimFairness } from "./claim-fairness.ts";
import { describeClosing } from "./closing.ts";
import { describeCounters } from "./counters.ts";
import { describeDeliveries } from "./deliveries.ts";
import { describeDependencies } from "./dependencies.ts";
import { describeEvents } from "./events.ts";
import { describeExpireTasks } from "./expire-tasks.ts";
import { describeFinishAndClaim } from "./finish-and-claim.ts";
import { describeIdempotencyKeys } from "./idempotency-keys.ts";
import { describeInsertTasks } from "./insert-tasks.ts";
import { describeLanesAndAgents } from "./lanes-and-agents.ts";
import { describeListTasks } from "./list-tasks.ts";
import { describeNodes } from "./nodes.ts";
import { describePromoteDue } from "./promote-due.ts";
import { describeProperties } from "./property.ts";
import { describePrune } from "./prune.ts";
import { describeRescueTasks } from "./rescue-tasks.ts";
import { describeRetryTask } from "./retry-task.ts";
import { describeSettlements } from "./settlements.ts";
import { describeSignals } from "./signals.ts";
import { describeSituation } from "./situation.ts";
import { describeTenants } from "./tenants.ts";
import { describeText } from "./text.ts";
import { type StorageHarness, worldOpener } from "./world.ts";

/** Every promise of the storage contract, kept by one driver. */
export function describeStorage(name: string, harness: StorageHarness): void {
  describe(name, () => {
    const open = worldOpener(harness);
    test("says whether it outlives the process and is this process's alone", async () => {
      expect((await open()).storage.capabilities).toEqual(harness.capabilities);
    });
    describeInsertTasks(open);
    describeAdmission(open);
    describeIdempotencyKeys(open);
    describeFinishAndClaim(open);
    describeSettlements(open);
    describeClaimFairness(open);
    describeLanesAndAgents(open);
    describeAgents(open);
    describeCancelTasks(open);
    describeRetryTask(open);
    describePromoteDue(open);
    describeExpireTasks(open);
    describeRescueTasks(open);
    describeDependencies(open);
    describePrune(open);
    describeListTasks(open);
    describeSituation(open);
    describeTenants(open);
    describeText(open);
    describeEvents(open);
    describeDeliveries(open);
    describeNodes(open);
    describeCounters(open);
    describeSignals(open);
    describeClosing(open);
    describeProperties(harness);
  });
}
