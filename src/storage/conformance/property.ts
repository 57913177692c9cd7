import { isDeepStrictEqual } from "node:util";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import type { EventType } from "../../model/event.ts";
import { openOracle } from "../oracle/connection/open.ts";
import type { StoredEvent } from "../storage.ts";
import {
  anyCommand,
  type Command,
  configureAgent,
  configureLane,
  createTenant,
  LANES,
  type PerTenant,
  registerWorker,
  send,
  step,
  submit,
  submitAlone,
  TENANTS,
  takeMessages,
  workerCommand,
} from "./commands.ts";
import { SteppedClock } from "./connection/clock.ts";
import { countAll, lookAtRollups, totals } from "./log/rollups.ts";
import { runCommand } from "./run-command.ts";
import { Side } from "./side.ts";
import type { StorageHarness } from "./world.ts";

/** A slow machine tries fewer sequences, and shrinks a failing one less, so that the whole run is not delayed. */
const TIME_LIMIT_MS = 3_000;
const TEST_TIMEOUT_MS = 120_000;

export function describeProperties(harness: StorageHarness): void {
  describe("any sequence of commands", { timeout: TEST_TIMEOUT_MS }, () => {
    test("ends as the oracle says, answer by answer, and leaves every counter right", async () => {
      const sequences = sequencesOf({ minLength: 1 });
      const compare = withinTimeLimit((commands: Command[]) => compareWithOracle(harness, commands));
      await fc.assert(fc.asyncProperty(sequences, compare), { numRuns: harness.propertyRuns });
    });

    test("of nodes and workers ends as the oracle says, too", async () => {
      const commands = fc.array(
        fc.oneof({ weight: 2, arbitrary: anyCommand }, { weight: 3, arbitrary: workerCommand }),
        {
          minLength: 5,
          maxLength: 60,
          size: "max",
        },
      );
      const prepared = fc.tuple(fc.array(createTenant, { maxLength: 2 }), registerWorker, commands);
      const sequences = prepared.map(([tenants, worker, then]) => [...tenants, ONLY_SOME, worker, ...then]);
      const compare = withinTimeLimit((commands: Command[]) => compareWithOracle(harness, commands));
      await fc.assert(fc.asyncProperty(sequences, compare), { numRuns: harness.propertyRuns });
    });

    test("of messages in all modes ends as the oracle says, too", async () => {
      const commands = fc.array(
        fc.oneof(
          { weight: 5, arbitrary: send },
          { weight: 3, arbitrary: takeMessages },
          { weight: 4, arbitrary: step },
          { weight: 2, arbitrary: anyCommand },
        ),
        { minLength: 5, maxLength: 60, size: "max" },
      );
      // Messages are sent for a tenant that has to exist.
      const sequences = commands.map((then): Command[] => [SECOND_TENANT, ...then]);
      const compare = withinTimeLimit((commands: Command[]) => compareWithOracle(harness, commands));
      await fc.assert(fc.asyncProperty(sequences, compare), { numRuns: harness.propertyRuns });
    });

    test("of tasks that come alone and may start at once ends as the oracle says, too", async () => {
      const commands = fc.oneof(
        { weight: 6, arbitrary: submitAlone },
        { weight: 3, arbitrary: step },
        { weight: 1, arbitrary: anyCommand },
      );
      const sequences = fc.array(commands, { minLength: 5, maxLength: 60, size: "max" });
      const compare = withinTimeLimit((commands: Command[]) => compareWithOracle(harness, commands));
      await fc.assert(fc.asyncProperty(sequences, compare), { numRuns: harness.propertyRuns });
    });

    test("is claimed from alike, k at once or one k times", async () => {
      const preparation = fc.array(
        fc.oneof(submit, submit, configureLane, configureAgent, createTenant, anyCommand),
        {
          minLength: 2,
          maxLength: 15,
          size: "max",
        },
      );
      const lane = fc.constantFrom(...LANES);
      const k = fc.integer({ min: 1, max: 24 });
      const perTenant = fc.option(fc.integer({ min: 1, max: 6 }));
      const compare = withinTimeLimit(
        (commands: Command[], lane: string, k: number, perTenant: number | null) =>
          compareClaims(harness, commands, { lane, k, perTenant }),
      );
      const numRuns = Math.ceil(harness.propertyRuns / 2);
      await fc.assert(fc.asyncProperty(preparation, lane, k, perTenant, compare), { numRuns });
    });

    test("may come between the slices of a recount, which then finds nothing", async () => {
      const sequences = sequencesOf({ minLength: 5 });
      const limit = fc.integer({ min: 1, max: 5 });
      const recount = withinTimeLimit((commands: Command[], limit: number) =>
        recountMeanwhile(harness, commands, limit),
      );
      const numRuns = Math.ceil(harness.propertyRuns / 2);
      await fc.assert(fc.asyncProperty(sequences, limit, recount), { numRuns });
    });

    test("adds up in the rollups to what the log had, however it was counted and pruned", async () => {
      const sequences = sequencesOf({ minLength: 5 });
      const compare = withinTimeLimit((commands: Command[]) => compareWithLog(harness, commands));
      const numRuns = Math.ceil(harness.propertyRuns / 2);
      await fc.assert(fc.asyncProperty(sequences, compare), { numRuns });
    });
  });
}

/** Nodes that run only instructions, so that there is something for workers. */
const ONLY_SOME: Command = { do: "setAbilities", node: 0, agents: [], names: [], kinds: ["instruction"] };

const SECOND_TENANT: Command = {
  do: "createTenant",
  tenant: TENANTS[1] ?? "",
  maxQueued: null,
  maxInflight: null,
};

/** Often creates tenants first, because many rules only apply with more than one. */
function sequencesOf({ minLength }: { minLength: number }): fc.Arbitrary<Command[]> {
  const tenants = fc.array(createTenant, { maxLength: 2 });
  const commands = fc.array(anyCommand, { minLength, maxLength: 60, size: "max" });
  return fc.tuple(tenants, commands).map(([first, then]) => [...first, ...then]);
}

/**
 * Skips all sequences once the time is up. fast-check can interrupt by itself, but the sequence in progress would then keep
 * running beside the following tests.
 */
export function withinTimeLimit<Params extends unknown[]>(compare: (...params: Params) => Promise<void>) {
  const end = Date.now() + TIME_LIMIT_MS;
  return async (...params: Params): Promise<void> => {
    if (Date.now() < end) await compare(...params);
  };
}

/** Commands that cancel several tasks at once. The order of their events is not defined. */
const CANCELS: readonly Command["do"][] = [
  "bulk",
  "cancel",
  "stopSession",
  "send",
  "clearLane",
  "fire",
  "deleteSchedule",
];

async function compareWithOracle(harness: StorageHarness, commands: readonly Command[]): Promise<void> {
  const clock = new SteppedClock();
  const { storage, dispose } = await harness.open(clock);
  try {
    const model = await Side.start(openOracle({ clock }), clock, harness);
    const real = await Side.start(storage, clock, harness);
    for (const [index, command] of commands.entries()) {
      if (command.do === "wait") clock.step(command.ms);
      const expected = await runCommand(model, command);
      expectSame(await runCommand(real, command), expected, `the answer to command ${index}`);
      const after = { inOrder: !CANCELS.includes(command.do) };
      const { faults: _none, ...seen } = await model.look(after);
      expectSame(await real.look(after), { ...seen, faults: [] }, `what is seen after command ${index}`);
    }
  } finally {
    await dispose();
  }
}

/** Recounts until no command is left. One command runs after each slice. */
async function recountMeanwhile(
  harness: StorageHarness,
  commands: readonly Command[],
  limit: number,
): Promise<void> {
  const clock = new SteppedClock();
  const { storage, dispose } = await harness.open(clock);
  try {
    const side = await Side.start(storage, clock, harness);
    const left = [...commands];
    const onSlice = async () => {
      const command = left.shift();
      if (command?.do === "wait") clock.step(command.ms);
      if (command !== undefined) await runCommand(side, command);
    };
    while (left.length > 0) expect(await storage.counters.recountAll({ limit, onSlice })).toEqual([]);
  } finally {
    await dispose();
  }
}

/** Skips `deleteTenant`, because rollups do not count what happens to the tasks of a deleted tenant. */
async function compareWithLog(harness: StorageHarness, commands: readonly Command[]): Promise<void> {
  const clock = new SteppedClock();
  const { storage, dispose } = await harness.open(clock);
  try {
    const side = await Side.start(storage, clock, harness);
    const seen = new Map<number, StoredEvent>();
    for (const command of commands) {
      if (command.do === "deleteTenant") continue;
      if (command.do === "wait") clock.step(command.ms);
      await runCommand(side, command);
      const { events } = await storage.events.read({ after: 0, limit: 100_000, bytesMax: 1e9 });
      for (const event of events) seen.set(event.seq, event);
    }
    await countAll(storage, 7);
    for (const tenant of TENANTS) {
      const events = [...seen.values()].filter((event) => event.tenant === tenant);
      const ofType = (type: EventType) => events.filter((event) => event.type === type).length;
      const expected = {
        submitted: ofType("task.created"),
        started: ofType("task.started"),
        done: ofType("task.completed"),
        failed: ofType("task.failed"),
        cancelled: ofType("task.cancelled"),
      };
      for (const rows of await lookAtRollups(storage, tenant)) expect(totals(rows)).toMatchObject(expected);
    }
  } finally {
    await dispose();
  }
}

/** Brings two storages into the same state. Then claims k tasks from one, and k times one task from the other. */
async function compareClaims(
  harness: StorageHarness,
  commands: readonly Command[],
  { lane, k, perTenant }: { lane: string; k: number; perTenant: number | null },
): Promise<void> {
  const clock = new SteppedClock();
  const [atOnce, oneByOne] = await Promise.all([harness.open(clock), harness.open(clock)]);
  try {
    const sides = [
      await Side.start(atOnce.storage, clock, harness),
      await Side.start(oneByOne.storage, clock, harness),
    ] as const;
    for (const command of commands) {
      if (command.do === "wait") clock.step(command.ms);
      for (const side of sides) await runCommand(side, command);
    }
    const expected: Claimed[] = [];
    for (let count = 0; count < k; count += 1)
      expected.push(...(await claim(sides[1], lane, 1, slotsAfter(expected, perTenant))));
    expect(await claim(sides[0], lane, k, slotsAfter([], perTenant))).toEqual(expected);
    expectSame(await sides[0].look(), await sides[1].look(), "what is seen afterwards");
  } finally {
    await Promise.all([atOnce.dispose(), oneByOne.dispose()]);
  }
}

interface Claimed {
  readonly tenant: string;
}

/** What tenants may still take, if each gets `max` in all and these tasks were claimed. */
function slotsAfter(claimed: readonly Claimed[], max: number | null): PerTenant | null {
  if (max === null) return null;
  const byTenant = Map.groupBy(claimed, ({ tenant }) => tenant);
  return { max, left: [...byTenant].map(([tenant, tasks]) => [tenant, max - tasks.length]) };
}

async function claim(
  side: Side,
  lane: string,
  limit: number,
  perTenant: PerTenant | null,
): Promise<Claimed[]> {
  const answer = await runCommand(side, {
    do: "step",
    claimsMax: null,
    node: 0,
    finishes: [],
    progress: [],
    begun: [],
    claims: [{ lane, limit, perTenant, isAssigned: false, ahead: null }],
  });
  return (answer as { claimed: Claimed[] }).claimed;
}

/** `expect` explains well but compares slowly, so it only runs where there may be a difference. */
function expectSame(actual: unknown, expected: unknown, what: string): void {
  if (!isDeepStrictEqual(actual, expected)) expect(actual, what).toEqual(expected);
}
