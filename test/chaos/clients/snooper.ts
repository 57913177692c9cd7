import type { Ledger } from "../ledger.ts";
import { Client, type ClientDependencies } from "./client.ts";

const NOT_FOUND = 404;
const UNAUTHORIZED = 401;

/** Learns the ids of other tenants, and tries what can be done with them, also without a key. */
export class Snooper extends Client {
  protected readonly pauseMs = 400;
  readonly #others: readonly Ledger[];

  constructor(others: readonly Ledger[], dependencies: ClientDependencies) {
    super(dependencies);
    this.#others = others;
  }

  protected async step(): Promise<void> {
    const { accepted, edits, resendsAsked } = this.chance.pick(this.#others);
    const schedules = edits.map(({ scheduleId }) => scheduleId);
    switch (this.chance.weighted({ task: 6, schedule: 3, delivery: 1, withoutKey: 1 })) {
      case "task":
        return this.#try("/tasks", accepted, ["", "/explain", "/cancel POST", "/retry POST"]);
      case "schedule":
        return this.#try("/v1/schedules", schedules, ["", " PATCH", " DELETE", "/run POST", "/runs"]);
      case "delivery":
        return this.#try("/v1/webhooks/deliveries", resendsAsked, ["", "/resend POST"]);
      case "withoutKey":
        return this.knock(`/tasks/${accepted.at(-1) ?? ""}`, { expected: UNAUTHORIZED, key: null });
    }
  }

  async #try(path: string, ids: readonly (string | number)[], deeds: readonly string[]): Promise<void> {
    if (ids.length === 0) return;
    const [rest = "", method = "GET"] = this.chance.pick(deeds).split(" ");
    const json = method === "PATCH" ? { enabled: false } : method === "POST" ? {} : undefined;
    await this.knock(`${path}/${this.chance.pick(ids)}${rest}`, { method, json, expected: NOT_FOUND });
  }
}
