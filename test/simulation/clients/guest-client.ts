import { RotaError } from "../../../src/model/errors.ts";
import type { Acknowledgement } from "../../chaos/history.ts";
import type { Guest } from "../tenants.ts";
import type { World } from "../world.ts";
import { Client } from "./client.ts";

/** What it does, and how often next to the others. */
const DEEDS = { submit: 10, cancel: 2, pry: 3, disable: 1, enable: 3 } as const;
const QUICK = { maxRetries: 2, backoffMs: 20, backoffMultiplier: 2, maxBackoffMs: 300, jitter: 0.5 };

/** Works in a tenant of its own, looks over the wall, and is locked out now and then. */
export class GuestClient extends Client {
  readonly #guest: Guest;

  constructor(world: World, guest: Guest) {
    super(world, guest.agent);
    this.#guest = guest;
  }

  protected override note(acknowledgement: Acknowledgement): void {
    this.#guest.ledger.acknowledged.push(acknowledgement);
  }

  protected step(): void {
    const { id } = this.#guest;
    const deeds: Record<keyof typeof DEEDS, () => void> = {
      submit: () => this.#submit(),
      cancel: () => this.#cancel(),
      pry: () => this.#pry(),
      disable: () => this.ask(`disable ${id}`, (rota) => rota.tenants.disable(id)),
      enable: () => this.ask(`enable ${id}`, (rota) => rota.tenants.enable(id)),
    };
    deeds[this.chance.weighted(DEEDS)]();
  }

  #submit(): void {
    const { id, agent, ledger } = this.#guest;
    const marker = ledger.marker(agent);
    const input = {
      agentId: agent,
      instruction: marker,
      timeout: 2_000,
      retryPolicy: QUICK,
      metadata: { marker },
      // The same as others use: keys, too, are each tenant's own.
      idempotencyKey: marker.replace(agent, "submit"),
    };
    this.askUntilAnswered(
      `submit ${marker}`,
      (rota) => rota.tenant(id).tasks.submit(input),
      ({ taskId }) => this.note({ what: "task", taskId, marker }),
    );
  }

  #cancel(): void {
    const { id, ledger } = this.#guest;
    const { accepted } = ledger;
    if (accepted.length === 0) return;
    const taskId = this.chance.pick(accepted);
    this.ask(
      `cancel ${taskId}`,
      (rota) => rota.tenant(id).tasks.cancel(taskId),
      () => this.note({ what: "cancelled", taskId }),
    );
  }

  /** What is another's is not there, whatever one does with it. */
  #pry(): void {
    const { world } = this;
    const { id } = this.#guest;
    const others = [world.ledger, ...world.guests.map(({ ledger }) => ledger)]
      .filter((ledger) => ledger !== this.#guest.ledger)
      .flatMap(({ accepted }) => accepted);
    if (others.length === 0) return;
    const taskId = this.chance.pick(others);
    const deed = this.chance.pick(["get", "cancel", "retry", "explain"] as const);
    this.ask<unknown>(
      `${deed} ${taskId} of another tenant`,
      (rota) => rota.tenant(id).tasks[deed](taskId),
      () => world.complain(`${id} could ${deed} ${taskId} of another tenant`),
      (error) => {
        if (error instanceof RotaError && error.code === "conflict")
          world.complain(`${id} learned something of ${taskId} of another tenant: ${error.message}`);
      },
    );
  }
}
