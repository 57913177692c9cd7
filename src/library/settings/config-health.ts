import type { Health } from "../../interface/rota.ts";
import { RotaError } from "../../model/errors.ts";
import type { Log } from "../../model/log.ts";

/** Tracks whether the configuration that was read last could be used. */
export class ConfigHealth {
  readonly #log: Log;
  #fault: string | null = null;
  /** The fault that was logged last; null once the recovery is logged. */
  #logged: string | null = null;

  constructor(log: Log) {
    this.#log = log;
  }

  get state(): Health["config"] {
    return this.#fault === null ? { ok: true } : { ok: false, error: this.#fault };
  }

  /** Sets the current fault; null: there is none. Logs no fault: the caller has reported it. */
  setFault(error: Error | null): void {
    this.#fault = error?.message ?? null;
    if (this.#fault !== null || this.#logged === null) return;
    this.#logged = null;
    this.#log.info({}, "the configuration is valid again");
  }

  /** The same for a fault that no caller gets: logs each fault once. */
  report(error: Error | null): void {
    this.setFault(error);
    if (error === null || this.#logged === error.message) return;
    this.#logged = error.message;
    // A fault of the configuration is whole in its sentence. Any other error is one of the program that loads it.
    const fields = error instanceof RotaError ? {} : { error };
    this.#log.error(fields, `the configuration is invalid and was not applied: ${error.message}`);
  }
}
