import { isDeepStrictEqual } from "node:util";
import { Service, type ServiceOptions } from "../../services/service.ts";
import type { Abilities, Storage } from "../../storage/storage.ts";
import type { Dispatcher } from "../work/dispatcher.ts";
import type { Capacity } from "../work/lane-slots.ts";
import type { Heartbeat } from "./heartbeat.ts";
import type { Rescuer } from "./rescuer.ts";

/** The delay between ticks while the membership is valid. */
const IDLE_MS = 60_000;
/** How often to check whether the last ends of the old membership are written. */
const FLUSH_LOOK_MS = 100;

export interface MembershipOptions extends ServiceOptions {
  readonly storage: Storage;
  readonly newNodeId: () => string;
  /** How many tasks of each lane this process runs at once. */
  readonly capacity: () => Capacity;
  /** Whether the node drains: it claims no more tasks. */
  readonly draining: () => boolean;
  /** The version of Rota. */
  readonly version: string;
  /** What this process can execute. */
  readonly abilities: () => Abilities;
}

/** The services that use the id of the membership. */
export interface MembershipParts {
  readonly dispatcher: Dispatcher;
  readonly heartbeat: Heartbeat;
  readonly rescuer: Rescuer;
}

/**
 * The registration of this process that other nodes see: its id, slots and abilities. A node that lost its lease does not
 * reuse the old id. It writes the attempts that had ended before, registers a new id, and rescues the tasks left under the old.
 */
export class Membership extends Service<MembershipOptions> {
  readonly name = "membership";
  #parts: MembershipParts | null = null;
  #node: string;
  /** Whether the lease is lost and no new id is registered yet. */
  #lost = false;
  /** The slots and the draining state that the storage has; null: unknown. */
  #registered: (Capacity & { readonly draining: boolean }) | null = null;
  /** The abilities that the storage has; null: unknown. */
  #abilities: Abilities | null = null;

  constructor(options: MembershipOptions) {
    super(options);
    this.#node = options.newNodeId();
  }

  get node(): string {
    return this.#node;
  }

  async begin(parts: MembershipParts): Promise<void> {
    // Each try uses a new id: an earlier try may have registered its id although the response was lost.
    if (this.#parts !== null) this.#node = this.options.newNodeId();
    this.#parts = parts;
    const { heartbeat } = parts;
    const sent = heartbeat.moment();
    await this.#register(this.#node);
    heartbeat.reset(sent);
  }

  /** The slots, the draining state or the abilities of this process have changed. */
  changed(): void {
    this.wake();
  }

  /** The storage was restored to an earlier state, and may have outdated slots and abilities of this node. */
  restored(): void {
    this.#registered = null;
    this.abilitiesDoubted();
  }

  /** Registers the abilities again, after the storage gave this node a task that it cannot execute. */
  abilitiesDoubted(): void {
    this.#abilities = null;
    this.wake();
  }

  /** The node lost its lease. The caller has aborted all attempts. */
  lose(): void {
    this.#lost = true;
    this.#parts?.dispatcher.stopClaiming();
    this.wake();
  }

  async tick(): Promise<number> {
    if (this.#parts === null) return IDLE_MS;
    if (this.#lost) return this.#comeBack(this.#parts);
    await this.#registerSlots();
    await this.#reportAbilities();
    return IDLE_MS;
  }

  /** A claim returns only tasks that the node's registered abilities cover. */
  async #reportAbilities(): Promise<void> {
    const abilities = this.options.abilities();
    if (isDeepStrictEqual(abilities, this.#abilities)) return;
    this.#abilities = null;
    await this.options.storage.nodes.setAbilities({ node: this.#node, abilities });
    this.#abilities = abilities;
    this.#parts?.dispatcher.wakeAll();
  }

  /** The storage must know the free slots: a critical task that finds one pre-empts no other. */
  async #registerSlots(): Promise<void> {
    const registered = { ...this.options.capacity(), draining: this.options.draining() };
    if (isDeepStrictEqual(registered, this.#registered)) return;
    this.#registered = null;
    await this.options.storage.nodes.setSlots({ node: this.#node, ...registered });
    this.#registered = registered;
  }

  async #register(node: string): Promise<void> {
    const capacity = this.options.capacity();
    const abilities = this.options.abilities();
    const { version } = this.options;
    await this.options.storage.nodes.register({ node, version, ...capacity, abilities });
    this.#registered = { ...capacity, draining: false };
    this.#abilities = abilities;
  }

  async #comeBack({ dispatcher, heartbeat, rescuer }: MembershipParts): Promise<number> {
    if (!dispatcher.flushed) return FLUSH_LOOK_MS;
    const old = this.#node;
    const next = this.options.newNodeId();
    const sent = heartbeat.moment();
    await this.#register(next);
    this.#node = next;
    this.#lost = false;
    heartbeat.reset(sent);
    dispatcher.startClaiming();
    this.log.info({ node: next, before: old }, "registered again after its lease was lost");
    await retire(this.options.storage, rescuer, old);
    return IDLE_MS;
  }

  /** Removes the membership at shutdown, so that other nodes need not wait for the lease to end. */
  async end(): Promise<void> {
    if (this.#parts !== null) await retire(this.options.storage, this.#parts.rescuer, this.#node);
  }
}

async function retire(storage: Storage, rescuer: Rescuer, node: string): Promise<void> {
  const record = (await storage.nodes.list()).find((candidate) => candidate.node === node);
  // `died` is false: its process is this one.
  if (record !== undefined) await rescuer.rescue(record, { died: false });
}
