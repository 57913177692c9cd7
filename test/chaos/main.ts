import { readOrders } from "../support/program-options.ts";
import { type Orders, parseCommandLine } from "./command-line.ts";
import { describeStep } from "./plan.ts";
import { type ChaosReport, runChaos } from "./run-chaos.ts";

const NODES = { sqlite: 1, postgres: 3 } as const;
/** One round after the other, each with a database and a seed of its own, so that a failure is soon repeated. */
const ROUND_MS = 60_000;
const FINDINGS_MAX = 20;

/** Rounds of chaos until the time is over; the first that breaks a promise ends it. */
async function main(orders: Orders): Promise<void> {
  const endsAt = performance.now() + orders.minutes * 60_000;
  for (let round = 0; round === 0 || performance.now() < endsAt; round += 1) {
    const storage = orders.storages[round % orders.storages.length] ?? "sqlite";
    const seed = orders.seed + round;
    const lastsMs = Math.min(ROUND_MS, orders.minutes * 60_000);
    console.log(`${storage}, seed ${seed}, ${lastsMs / 1_000} s`);
    const report = await runChaos({
      seed,
      storage,
      nodes: NODES[storage],
      lastsMs,
      brief: false,
      say: console.log,
    });
    console.log(summary(report));
    if (report.findings.length === 0) continue;
    console.log(complaint(report));
    console.log(
      `\nAgain: npm run chaos -- --storage ${storage} --seed ${seed} --minutes ${lastsMs / 60_000}`,
    );
    process.exitCode = 1;
    return;
  }
}

function summary({ history, ledgers }: ChaosReport): string {
  const { tasks, events, calls, runs, callbacks } = history;
  const unanswered = ledgers.reduce((sum, ledger) => sum + ledger.unanswered, 0);
  const ends = Object.entries(Object.groupBy(tasks.values(), ({ state }) => state))
    .map(([state, list]) => `${list?.length} ${state}`)
    .join(", ");
  return [
    `   ${tasks.size} tasks (${ends}), ${events.length} events, ${calls.length} calls, ${runs.length} runs, ${callbacks.length} callbacks;`,
    `${history.acknowledged.length} answers, ${unanswered} requests unanswered`,
  ].join(" ");
}

function complaint({ findings, plan, logs }: ChaosReport): string {
  const lines = findings.slice(0, FINDINGS_MAX).map(({ promise, said }) => `  ${promise}: ${said}`);
  const more = findings.length > FINDINGS_MAX ? [`  … and ${findings.length - FINDINGS_MAX} more`] : [];
  const steps = plan.map(describeStep);
  return [
    `\n${findings.length} promises broken:`,
    ...lines,
    ...more,
    "\nThe plan:",
    ...steps,
    `\nLogs: ${logs}`,
  ].join("\n");
}

// Nodes end with this process, which must handle signals for that.
for (const signal of ["SIGINT", "SIGTERM"]) process.once(signal, () => process.exit(1));
await main(readOrders(parseCommandLine));
