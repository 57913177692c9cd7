import { RotaError } from "../model/errors.ts";
import type { MakerLimit } from "./schedule-storage.ts";

/** The maker of schedules has as many as it may. `oldest`: some of them, which could be deleted. */
export function tooManyOfMaker({ by, id, max }: MakerLimit, oldest: readonly number[]): RotaError {
  const who =
    by === "tenant" ? "callers without a key" : by === "key" ? `the key ${id}` : `the agent "${id}"`;
  const named =
    oldest.length === 0
      ? ""
      : `: delete one first, of the oldest ${oldest.map((each) => `#${each}`).join(", ")}`;
  const schedules = max === 1 ? "1 active or paused schedule" : `${max} active or paused schedules`;
  return new RotaError("quota_exceeded", `\`maxActiveSchedules\`: ${who} may have ${schedules}${named}`, {
    details: { bound: "maxActiveSchedules", max, oldest },
  });
}
