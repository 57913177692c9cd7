import { expect, test } from "vitest";
import { shownSchedule } from "../../../test/support/shown-schedules.ts";
import { scheduleLine } from "./schedule-text.ts";
import { schedulesTable } from "./schedules-table.ts";
import { zonedText } from "./zoned-text.ts";

// A Friday, 07:00 in the zone of the machine: the table shows the same everywhere.
const HERE = Intl.DateTimeFormat().resolvedOptions().timeZone;
const NOW = Date.parse(`2026-05-08T07:00:00${zonedText(Date.parse("2026-05-08T07:00:00Z")).slice(19)}`);
const inHours = (hours: number) => Math.floor(NOW / 1_000) + hours * 3_600;
/** Where clocks show another time than here. */
const ELSEWHERE = ["Asia/Kathmandu", "America/New_York"].find(
  (tz) => zonedText(NOW, tz) !== zonedText(NOW),
) as string;

const weekly = shownSchedule({ tz: HERE, next_fire_at: inHours(2), last_run_at: inHours(-3) });

test("a schedule on a line has its number, what was understood, when it is due in words, and its agent", () => {
  expect(scheduleLine(weekly, NOW)).toBe("#17 every monday at 09:00, next in 2 h, Fri 09:00 → research");
  const once = shownSchedule({ ...weekly, schedule_kind: "once", schedule_phrase: "in 2 hours" });
  expect(scheduleLine(once, NOW)).toBe("#17 in 2 hours, due in 2 h, Fri 09:00 → research");
  const paused = shownSchedule({ tz: HERE, status: "paused" });
  expect(scheduleLine(paused, NOW)).toBe("#17 every monday at 09:00, paused → research");
});

test("a zone is named where its clocks show another time than those here", () => {
  const away = shownSchedule({ tz: ELSEWHERE, next_fire_at: inHours(2) });
  const time = zonedText(NOW + 2 * 3_600_000, ELSEWHERE).slice(11, 16);
  expect(scheduleLine(away, NOW)).toMatch(
    new RegExp(`next in 2 h, \\w+ ${time} \\(${ELSEWHERE}\\) → research$`),
  );
});

test("schedules are a table with when each is due in words, and what went wrong last", () => {
  const failing = shownSchedule({
    ...weekly,
    id: 3,
    name: "Deploys",
    schedule_phrase: "every 15 min",
    next_fire_at: inHours(24 * 7),
    last_status: "failed",
    last_error: "HTTP 500:\nno",
  });
  const over = shownSchedule({ id: 2, status: "completed", agent_id: "index", schedule_phrase: "in 1 hour" });
  expect(schedulesTable([weekly, failing, over], { now: NOW, width: undefined })).toEqual([
    "ID  STATUS     NEXT                          SCHEDULE               AGENT     LAST RUN  MESSAGE",
    "17  active     in 2 h, Fri 09:00             every monday at 09:00  research  3 h ago   summarise the week",
    " 3  active     in 7 d, Fri 2026-05-15 07:00  every 15 min           research  3 h ago   ✗ HTTP 500: no · Deploys · summarise the week",
    " 2  completed                                in 1 hour              index               summarise the week",
  ]);
});

test("in a narrow terminal the moment is what is cut last", () => {
  const narrow = (width: number) => schedulesTable([weekly], { now: NOW, width })[1];
  expect(narrow(80)).toBe("17  active  in 2 h, Fri 09:00  every monday at …  resea…  3 h ago   summarise t…");
  expect(narrow(60)).toBe("17  active  in 2 h, …  every mon…  resea…  3 h ago   summarise t…");
});
