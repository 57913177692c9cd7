import { type DaysRule, WEEKDAYS, type WeeksRule } from "../model/rule.ts";
import { countEach, type WallPattern } from "./clock-changes.ts";
import { DAY_MS, dayOf, mondayOf, timeOf, timeOfText, weekdayOf, weekOf } from "./wall-clock.ts";

/** A time of day, every `every` days. The first one is the first after the anchor. */
export function everyDays({ every, at }: DaysRule, anchorWall: number): WallPattern {
  const time = timeOfText(at);
  const firstDay = dayAfter(anchorWall, time);
  return fixed((wall) => {
    const day = dayAfter(wall, time);
    if (every === 1) return day * DAY_MS + time;
    const steps = Math.max(0, Math.ceil((day - firstDay) / every));
    return (firstDay + steps * every) * DAY_MS + time;
  });
}

/** A time on some weekdays, every `every` weeks. The first week is that of the first such time after the anchor. */
export function everyWeeks({ every, on, at }: WeeksRule, anchorWall: number): WallPattern {
  const time = timeOfText(at);
  const weekdays = on.map((name) => WEEKDAYS.indexOf(name));
  const firstWeek = weekOf(nextDay(dayAfter(anchorWall, time), 1, 0));
  return fixed((wall) => {
    const day = dayAfter(wall, time);
    const from = every === 1 ? day : Math.max(day, mondayOf(firstWeek));
    return nextDay(from, every, firstWeek) * DAY_MS + time;
  });

  /** The first such weekday from `day` on, in a week that is a whole number of steps from `week`. */
  function nextDay(day: number, step: number, week: number): number {
    const stepsBehind = (weekOf(day) - week) % step;
    if (stepsBehind === 0) {
      const later = weekdays.find((weekday) => weekday >= weekdayOf(day));
      if (later !== undefined) return mondayOf(weekOf(day)) + later;
    }
    return mondayOf(weekOf(day) + step - stepsBehind) + (weekdays[0] as number);
  }
}

function fixed(next: WallPattern["next"]): WallPattern {
  return { isFixed: true, next, count: (...between) => countEach(next, ...between) };
}

/** The first day whose `time` is after a local time. */
function dayAfter(wall: number, time: number): number {
  return timeOf(wall) < time ? dayOf(wall) : dayOf(wall) + 1;
}
