import type { RotaOptions } from "../../src/interface/options.ts";
import type { Rota, RotaApi } from "../../src/interface/rota.ts";
import type { ManualClock } from "../../src/testing/manual-clock.ts";

/** One way in to a scheduler, which ends with the test. */
export interface Opened {
  /** The library or the client under test. */
  readonly api: RotaApi;
  /** The scheduler behind it, for what only its own process can do: agents that are functions, draining. */
  readonly rota: Rota;
  /** The same interface for the holder of this key; the library itself needs none. */
  readonly withKey: (key: string) => RotaApi;
  readonly clock: ManualClock;
}

export interface OpenParams {
  readonly options?: Omit<RotaOptions, "storage" | "clock" | "log">;
  /** False: nothing is run. */
  readonly start?: boolean;
}

export type Open = (params?: OpenParams) => Promise<Opened>;

/** What a call throws. */
export async function errorOf(call: Promise<unknown>): Promise<unknown> {
  try {
    await call;
  } catch (error) {
    return error;
  }
  throw new Error("the call was to throw");
}
