import { onTestFinished } from "vitest";
import type { Environment } from "../../src/config/process-environment.ts";
import type { RotaOptions } from "../../src/interface/options.ts";
import type { Rota } from "../../src/interface/rota.ts";
import { resolveSettings } from "../../src/library/settings/settings.ts";
import { joinRota } from "../../src/rota.ts";
import type { Storage } from "../../src/storage/storage.ts";
import { ManualClock } from "../../src/testing/manual-clock.ts";
import { RecordingLog } from "./recording-log.ts";
import { type Meddler, meddle, openMemory } from "./storages.ts";

export interface TestRota {
  readonly rota: Rota;
  readonly clock: ManualClock;
  readonly log: RecordingLog;
  readonly storage: Storage;
}

export interface TestRotaParams {
  readonly options?: Omit<RotaOptions, "storage" | "clock" | "log">;
  readonly clock?: ManualClock;
  /** A fresh one in memory unless given. */
  readonly storage?: Storage;
  readonly meddler?: Meddler;
  /** The variables that Rota sees; left out: none. */
  readonly environment?: Environment;
}

/** A Rota with all its parts, time standing still, that ends with the test. */
export async function openTestRota(params: TestRotaParams = {}): Promise<TestRota> {
  const { clock = new ManualClock(), options: given = {}, meddler = {}, environment = {} } = params;
  const storage = params.storage ?? (await openMemory(clock));
  const log = new RecordingLog();
  const options = { random: () => 0.5, ...given, clock, log };
  const settings = resolveSettings(options, { clock, environment });
  const rota = await joinRota({ options, settings, storage: meddle(storage, meddler), environment });
  onTestFinished(async () => {
    const stopped = rota.stop({ graceMs: 0 });
    // What the test broke may wait for a clock that no test moves any more.
    await Promise.race([stopped, clock.advance(120_000)]);
  });
  return { rota, clock, log, storage };
}
