import { expect, test } from "vitest";
import { STEPS_PER_TURN, type Steps, WorkTurns } from "./work-turns.ts";

function* counting(steps: number, onStep: () => void): Steps<string> {
  for (let step = 0; step < steps; step += 1) {
    onStep();
    yield;
  }
  return "done";
}

/** Counts the steps between turns of the event loop until `until` is settled. */
async function mostInOneTurn(until: Promise<unknown>, steps: () => number): Promise<number> {
  let most = 0;
  let seen = 0;
  let over = false;
  void until.finally(() => {
    over = true;
  });
  while (!over) {
    most = Math.max(most, steps() - seen);
    seen = steps();
    await new Promise((resolve) => setImmediate(resolve));
  }
  return most;
}

test("lets other work through after a few steps, however many computations are under way", async () => {
  const turns = new WorkTurns();
  let steps = 0;
  const many = Array.from({ length: 8 }, () => turns.run(counting(10 * STEPS_PER_TURN, () => steps++)));
  // Each has begun.
  steps = 0;
  expect(await mostInOneTurn(Promise.all(many), () => steps)).toBeLessThanOrEqual(STEPS_PER_TURN);
  expect(await Promise.all(many)).toEqual(Array(8).fill("done"));
});

test("takes turns: a shorter computation does not wait for a longer one that came first", async () => {
  const turns = new WorkTurns();
  const ended: string[] = [];
  await Promise.all([
    turns.run(counting(100 * STEPS_PER_TURN, () => {})).then(() => ended.push("long")),
    turns.run(counting(2 * STEPS_PER_TURN, () => {})).then(() => ended.push("short")),
  ]);
  expect(ended).toEqual(["short", "long"]);
});

test("rejects with what a step throws, and goes on with the others", async () => {
  const turns = new WorkTurns();
  const broken = turns.run(
    counting(2 * STEPS_PER_TURN, () => {
      throw new Error("broken");
    }),
  );
  const other = turns.run(counting(3 * STEPS_PER_TURN, () => {}));
  await expect(broken).rejects.toThrow("broken");
  expect(await other).toBe("done");
});
