import { nextMoment } from "../../src/schedules/moments.ts";
import { parseSchedule } from "../../src/schedules/schedule-input.ts";
import { type Figure, figure } from "../figure.ts";
import type { Setting } from "../job.ts";

const SCHEDULES = [
  "every 15 minutes",
  "every day at 09:00",
  "every Mon and Thu at 09:00",
  "*/15 * * * *",
  "0 9 * * 1-5",
];
const START = Date.UTC(2026, 0);
const GOAL = { below: 50 };

/** What it takes to find the next moment of a schedule, one after the other, through clock changes. */
export async function schedulesJob({ turns, sizes }: Setting): Promise<Figure[]> {
  const when = { now: START, tz: "Europe/Berlin" };
  return SCHEDULES.map((schedule) => {
    const rule = parseSchedule(schedule, when);
    const walk = () => {
      let after = START;
      const begin = performance.now();
      for (let count = 0; count < sizes.samples; count++) {
        after = nextMoment(rule, { after, anchor: START }) ?? START;
      }
      return ((performance.now() - begin) * 1_000) / sizes.samples;
    };
    return figure(`next moment of "${schedule}"`, "µs", Array.from({ length: turns }, walk), GOAL);
  });
}
