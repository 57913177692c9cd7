import { writeFile } from "node:fs/promises";
import { readOrders } from "../support/program-options.ts";
import { type Orders, parseCommandLine } from "./command-line.ts";
import { reportLooks } from "./report.ts";
import { runSoak, type SoakResult } from "./run-soak.ts";

/** Prints each look to stderr, and the curves to stdout; anything that is not level ends it with 1. */
async function main({ minutes, storage, jsonFile }: Orders): Promise<void> {
  const interrupted = new AbortController();
  for (const name of ["SIGINT", "SIGTERM"]) process.once(name, () => interrupted.abort(new Error(name)));
  const result = await runSoak({
    storage,
    lastsMs: minutes * 60_000,
    stop: interrupted.signal,
    say: (line) => console.error(line),
  });
  const { table, faults } = reportLooks(result.looks);
  console.log(`${storage}, ${minutes} minutes\n\n${table}\n\n${summary(result)}`);
  if (jsonFile !== null) await writeFile(jsonFile, `${JSON.stringify(result.looks, null, 2)}\n`);
  const found = [...faults, ...complaints(result)];
  for (const fault of found) console.log(fault);
  console.log(found.length === 0 ? "Everything stayed level." : "Something did not.");
  if (found.length > 0) process.exitCode = 1;
}

function summary({ tally, callbacks, keptForDaysBytes }: SoakResult): string {
  const count = (value: number) => value.toLocaleString("en");
  const { accepted, events, refused } = tally;
  return [
    `${count(accepted)} tasks accepted, ${count(refused)} requests refused as they should be, ${count(events)} events,`,
    `${count(callbacks)} callbacks; runs and notifications, which are kept for days, took`,
    `${(keptForDaysBytes / 2 ** 20).toFixed(1)} MiB and are not part of the database above.`,
  ].join(" ");
}

function complaints({ tally, doctor, endedWell }: SoakResult): string[] {
  const ill = doctor.checks.filter(({ ok }) => !ok);
  return [
    ...[...tally.surprises].map(([said, times]) => `not expected, ${times} times: ${said}`),
    ...ill.map(({ name, summary: said, findings }) => `doctor, ${name}: ${said} ${findings.join("; ")}`),
    ...(endedWell ? [] : ["the server did not end well"]),
  ];
}

await main(readOrders(parseCommandLine));
