import type { Health } from "../../interface/rota.ts";
import type { Log } from "../../model/log.ts";

/** Whether the configuration that was read last could be used. */
export class ConfigHealth {
  readonly #log: Log;
  #fault: string | null = null;
  /** What the log was told, until it was told that all is well again. */
  #logged: string | null = null;

  constructor(log: Log) {
    this.#log = log;
  }

  get state(): Health["config"] {
    return this.#fault === null ? { ok: true } : { ok: false, error: this.#fault };
  }

  /** What is wrong now; null: nothing. Whoever found it out knows it already. */
  note(error: Error | null): void {
    this.#fault = error?.message ?? null;
    if (this.#fault !== null || this.#logged === null) return;
    this.#logged = null;
    this.#log.info({}, "the configuration can be used again");
  }

  /** The same for what nobody else is told of: the log is, once for each fault. */
  tell(error: Error | null): void {
    this.note(error);
    if (error === null || this.#logged === error.message) return;
    this.#logged = error.message;
    this.#log.error({ error }, `the configuration cannot be used, so that nothing changes: ${error.message}`);
  }
}
