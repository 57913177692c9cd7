import { check, type Finding } from "../chaos/checks/index.ts";
import type { History } from "../chaos/history.ts";
import { callbacks } from "./callbacks.ts";
import { checkGuests } from "./tenants.ts";
import type { World } from "./world.ts";

const IN_HASTE = "could not store the outcomes of some tasks; they run again after the next start";
/** What a process may say as an error when everything around it fails. */
const EXPECTED = new Set([
  "lost its lease and aborted its running tasks",
  IN_HASTE,
  "could not store the limits of agents",
]);

/** The reason of a node that learned from another that it lost its lease. */
const DECLARED_DEAD = "another node declared this one dead";

/** Callbacks come to a receiver that can see more than one on a network: whether two are on their way at the same time. */
const LOOKED_AT_HERE = "every end is sent to its callback URL";

/** What chaos looks for, and what can be seen only where everything can be. */
export function checkAll(history: History, world: World): Finding[] {
  // A call for a task of no tenant is a finding of the default tenant.
  const ofGuests = new Set(world.seenByGuests.flatMap(([, { tasks }]) => [...tasks.keys()]));
  const own = { ...history, calls: history.calls.filter(({ taskId }) => !ofGuests.has(taskId)) };
  return [
    ...check(own).filter(({ promise }) => promise !== LOOKED_AT_HERE),
    ...checkGuests(own, history, world),
    ...startedAfterAll(history),
    ...witnessed(history, world),
    ...complaints(world),
  ];
}

/** An attempt that was returned because it had not started was never started. */
function startedAfterAll({ calls, tasks }: History): Finding[] {
  const promise = "what was not started is not running";
  const wrong = calls.filter(({ taskId, attempt }) =>
    tasks.get(taskId)?.attempts[attempt - 1]?.error?.startsWith("not started"),
  );
  return wrong.map(({ taskId, attempt }) => ({ promise, said: `${taskId}: attempt ${attempt} was called` }));
}

function witnessed(history: History, world: World): Finding[] {
  const { witness, all } = world;
  const of = (promise: string, said: readonly string[]) => said.map((each) => ({ promise, said: each }));
  return [
    ...of("what lost its lease is not begun", witness.begunAfterFence(history)),
    ...of("what ended before a lease was lost is written down", witness.forgotten(history, leftInHaste(all))),
    ...of("what stands still does not fire", witness.firedWhileStill(history)),
    ...world.seenByGuests.flatMap(([{ id }, seen]) =>
      of("nothing of a tenant starts that is disabled", witness.startedWhileDisabled(id, seen)),
    ),
    ...of("every due time has one row", doubled(world)),
    ...of("every callback is made", callbacks(history, world)),
    ...of("a node lets go before others take over", tookOver(all)),
  ];
}

/** However a schedule is changed, and its clock is set. */
function doubled({ runs }: World): string[] {
  const moments = runs
    .filter(({ forced }) => !forced)
    .map(({ scheduleId, dueAt }) => `${scheduleId} ${dueAt}`);
  return moments
    .filter((moment, index) => moments.indexOf(moment) < index)
    .map((moment) => `schedule and moment ${moment} have two rows`);
}

/** Processes that left although they could not write down what had ended: they say so. */
function leftInHaste(processes: World["all"]): string[] {
  return processes.filter(({ log }) => log.messages("error").includes(IN_HASTE)).map(({ name }) => name);
}

/** A node counts its lease from before others could: it has let go when they declare it dead, unless it sleeps. */
function tookOver(processes: World["all"]): string[] {
  return processes
    .filter(({ log }) => log.lines.some(({ fields }) => fields["reason"] === DECLARED_DEAD))
    .map(
      ({ name }) =>
        `${name} kept its tasks until the storage reported that another node had declared it dead`,
    );
}

/** What was found wrong on the way, and what a process said that it never should. */
function complaints({ all, complained }: World): Finding[] {
  const promise = "nothing fails but what was made to";
  const said = all.flatMap(({ name, log }) =>
    log.lines
      .filter(({ level, message }) => level === "error" && !EXPECTED.has(message))
      .map(({ message, fields }) => `${name}: ${message} ${String(fields["error"] ?? "")}`),
  );
  return [...complained, ...said].map((each) => ({ promise, said: each }));
}
