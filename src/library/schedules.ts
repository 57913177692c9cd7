import type { Schedules } from "../interface/schedules.ts";
import { preview } from "../schedules/preview.ts";
import { parsePreviewInput } from "../schedules/preview-input.ts";
import { localZone } from "../schedules/zone.ts";
import type { StorageClock } from "../services/storage-clock.ts";

/** Schedules, as users handle them. */
export function createSchedules({ storageClock }: { readonly storageClock: StorageClock }): Schedules {
  return {
    async preview(input) {
      const { rule, ...range } = parsePreviewInput(input, { now: storageClock.now(), tz: localZone() });
      return preview(rule, range);
    },
  };
}
