import type { Rota } from "../src/interface/rota.ts";
import type { ScheduleInput } from "../src/model/input/schedule-schema.ts";

/** How many are made at the same time, as by as many users. */
const AT_ONCE = 200;

/** Makes `count` schedules. */
export async function loadSchedules(
  rota: Rota,
  { count, schedule }: { readonly count: number; readonly schedule: ScheduleInput },
): Promise<void> {
  let made = 0;
  const makeSome = async () => {
    while (made < count) {
      made += 1;
      await rota.schedules.create({ schedule, message: "look around" });
    }
  };
  await Promise.all(Array.from({ length: AT_ONCE }, makeSome));
}
