import { isDeepStrictEqual } from "node:util";
import { Service, type ServiceOptions } from "../../services/service.ts";
import type { Abilities, Storage } from "../../storage/storage.ts";
import type { Dispatcher } from "../work/dispatcher.ts";
import type { Capacity } from "../work/lane-slots.ts";
import type { Heartbeat } from "./heartbeat.ts";
import type { Rescuer } from "./rescuer.ts";

/** While all is well there is nothing to do. */
const IDLE_MS = 60_000;
/** How soon to look again whether the last ends of the old membership are written. */
const FLUSH_LOOK_MS = 100;

export interface MembershipOptions extends ServiceOptions {
  readonly storage: Storage;
  readonly newNodeId: () => string;
  /** How many tasks of each lane this process is there to run. */
  readonly capacity: () => Capacity;
  /** Whether the node drains: it claims no more tasks. */
  readonly draining: () => boolean;
  /** The version of Rota. */
  readonly version: string;
  /** What this process can execute. */
  readonly abilities: () => Abilities;
}

/** The parts that act in the name of the membership. */
export interface MembershipParts {
  readonly dispatcher: Dispatcher;
  readonly heartbeat: Heartbeat;
  readonly rescuer: Rescuer;
}

/**
 * What the others know of this process: its name, and how much it runs at once. A node that lost its lease does not come
 * back under the old name: it writes down what had ended before, takes a new name, and rescues whatever is left of the old.
 */
export class Membership extends Service {
  readonly name = "membership";
  readonly #options: MembershipOptions;
  #parts: MembershipParts | null = null;
  #node: string;
  /** Whether the lease is gone and no new name is known yet. */
  #lost = false;
  /** The slots that the storage knows of, and whether it knows that the node drains; null: perhaps others. */
  #registered: (Capacity & { readonly draining: boolean }) | null = null;
  /** The same of what this process can execute. */
  #abilities: Abilities | null = null;

  constructor(options: MembershipOptions) {
    super(options);
    this.#options = options;
    this.#node = options.newNodeId();
  }

  get node(): string {
    return this.#node;
  }

  async begin(parts: MembershipParts): Promise<void> {
    // A name is tried once: the answer to an earlier try may have got lost, and the name with it.
    if (this.#parts !== null) this.#node = this.#options.newNodeId();
    this.#parts = parts;
    const { heartbeat } = parts;
    const sent = heartbeat.moment();
    await this.#register(this.#node);
    heartbeat.reset(sent);
  }

  /** More, fewer or other tasks are run here from now on. */
  changed(): void {
    this.wake();
  }

  /** The storage was put back to an earlier state: what it knows of this node is what it was told then. */
  restored(): void {
    this.#registered = null;
    this.abilitiesDoubted();
  }

  /** Registers the abilities again, after the storage gave this node a task that it cannot execute. */
  abilitiesDoubted(): void {
    this.#abilities = null;
    this.wake();
  }

  /** Everything that ran has just been aborted. */
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

  /** The storage hands this node only what it can execute. */
  async #reportAbilities(): Promise<void> {
    const abilities = this.#options.abilities();
    if (isDeepStrictEqual(abilities, this.#abilities)) return;
    this.#abilities = null;
    await this.#options.storage.nodes.setAbilities({ node: this.#node, abilities });
    this.#abilities = abilities;
    this.#parts?.dispatcher.wakeAll();
  }

  /** The storage must know the free slots: a critical task that finds one pre-empts no other. */
  async #registerSlots(): Promise<void> {
    const registered = { ...this.#options.capacity(), draining: this.#options.draining() };
    if (isDeepStrictEqual(registered, this.#registered)) return;
    this.#registered = null;
    await this.#options.storage.nodes.setSlots({ node: this.#node, ...registered });
    this.#registered = registered;
  }

  async #register(node: string): Promise<void> {
    const capacity = this.#options.capacity();
    const abilities = this.#options.abilities();
    const { version } = this.#options;
    await this.#options.storage.nodes.register({ node, version, ...capacity, abilities });
    this.#registered = { ...capacity, draining: false };
    this.#abilities = abilities;
  }

  async #comeBack({ dispatcher, heartbeat, rescuer }: MembershipParts): Promise<number> {
    if (!dispatcher.flushed) return FLUSH_LOOK_MS;
    const old = this.#node;
    const next = this.#options.newNodeId();
    const sent = heartbeat.moment();
    await this.#register(next);
    this.#node = next;
    this.#lost = false;
    heartbeat.reset(sent);
    dispatcher.startClaiming();
    this.log.info({ node: next, before: old }, "continues with a new membership");
    await retire(this.#options.storage, rescuer, old);
    return IDLE_MS;
  }

  /** On the way out: the others need not wait for a lease to see that nobody is here. */
  async end(): Promise<void> {
    if (this.#parts !== null) await retire(this.#options.storage, this.#parts.rescuer, this.#node);
  }
}

async function retire(storage: Storage, rescuer: Rescuer, node: string): Promise<void> {
  const record = (await storage.nodes.list()).find((candidate) => candidate.node === node);
  // Its process is this one, which lives.
  if (record !== undefined) await rescuer.rescue(record, { died: false });
}
