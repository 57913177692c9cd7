import { AT_ONCE, perSecond } from "../../workload.ts";
import { fill, type Measure, PER_CALL, rateOf, task, tasks, WARM_UP } from "./measure.ts";

/** Tasks a second that one caller submits, one after the other, each time waiting for the answer. */
export const addOne: Measure = async ({ queue, sizes }) => {
  await rateOf(WARM_UP / 20, (n) => queue.add(task(n)));
  return { perSecond: await rateOf(sizes.addOne, (n) => queue.add(task(n))) };
};

/** The same by fifty callers at once. */
export const addConcurrent: Measure = async ({ queue, sizes }) => {
  const addAll = async (count: number) => {
    let next = 0;
    const caller = async () => {
      while (next < count) await queue.add(task(next++));
    };
    await Promise.all(Array.from({ length: AT_ONCE }, caller));
  };
  await addAll(WARM_UP);
  const begun = performance.now();
  await addAll(sizes.addConcurrent);
  return { perSecond: perSecond(sizes.addConcurrent, performance.now() - begun) };
};

/** Tasks a second that one caller submits with calls of a thousand. */
export const addMany: Measure = async ({ queue, sizes }) => {
  await fill(queue, 2 * PER_CALL);
  const rate = await rateOf(sizes.addMany, (n) => queue.addMany(tasks(n, PER_CALL)), PER_CALL);
  return { perSecond: rate };
};

/** Makes `count` tasks wait: what later runs find. */
export const load: Measure = async ({ queue, count }) => {
  const begun = performance.now();
  await fill(queue, count);
  return { perSecond: perSecond(count, performance.now() - begun) };
};
