import type { Storage, StorageSignal } from "../../src/storage/storage.ts";
import { away } from "../support/storages.ts";
import type { Actor } from "./agenda.ts";
import { type Climate, happens } from "./climate.ts";
import type { Witness } from "./witness.ts";

/** How long an answer is waited for, as the driver of PostgreSQL does. */
const PATIENCE_MS = 20_000;
/** What takes longer than this is slow. */
const SLOW_MS = 300;

export interface LinkOptions {
  readonly storage: Storage;
  /** On whose time what was sent arrives. */
  readonly network: Actor;
  readonly process: Actor;
  /** How the world is now. */
  readonly climate: () => Climate;
  readonly witness: Witness;
}

// biome-ignore lint/suspicious/noExplicitAny: stands for every operation there is.
type Operate = (params?: any) => Promise<any>;

/**
 * What lies between a process and its database. Each operation of the storage happens at once and whole; what is sent to it
 * and what it answers takes time, overtakes others and gets lost.
 */
export class Link {
  /** The storage, as the process at this end sees it. */
  readonly storage: Storage;
  readonly #options: LinkOptions;
  readonly #listeners = new Set<(signal: StorageSignal) => void>();
  readonly #stopListening: () => void;
  #cut = false;
  /** Operations, and parts of the storage, that fail for now, though all others work. */
  readonly #ailing = new Set<string>();
  /** When what is on its way was sent. */
  readonly #underWay = new Set<{ readonly since: number }>();
  #troubledAt = 0;
  /** What is to happen once an operation of this name was carried out, and before its answer arrives. */
  #inTheMidst: { readonly operation: string; readonly run: () => void } | null = null;

  constructor(options: LinkOptions) {
    this.#options = options;
    const { storage } = options;
    this.#stopListening = storage.subscribe((signal) => this.#receive(signal));
    const parts = Object.entries(storage).map(([name, part]) => [name, this.#wrapped(name, part)]);
    this.storage = {
      ...Object.fromEntries(parts),
      capabilities: { durable: true, exclusive: false, claimsAhead: true },
      subscribe: (listener: (signal: StorageSignal) => void) => {
        this.#listeners.add(listener);
        return () => void this.#listeners.delete(listener);
      },
      close: async () => this.close(),
    };
  }

  /** Nothing gets through any more, in either direction. */
  cut(): void {
    this.#cut = true;
  }

  /** Since when nothing has failed or was slow; Infinity: something is right now. */
  get calmSince(): number {
    const { now } = this.#options.process.agenda;
    const isCalm = !this.#cut && [...this.#underWay].every(({ since }) => now - since <= SLOW_MS);
    return isCalm ? this.#troubledAt : Number.POSITIVE_INFINITY;
  }

  /** What went before does not count as calm. */
  trouble(): void {
    this.#troubledAt = this.#options.process.agenda.now;
  }

  /** An operation, or all of a part, fails from now on, as when a table is locked; no connection breaks. */
  ail(what: string): void {
    this.#ailing.add(what);
  }

  heal(what: string): void {
    this.#ailing.delete(what);
  }

  /** Does something as soon as this operation was carried out the next time, while its answer is on its way. */
  inTheMidst(operation: string, run: () => void): void {
    this.#inTheMidst = { operation, run };
  }

  mend(): void {
    this.#ailing.clear();
    this.#inTheMidst = null;
    if (!this.#cut) return;
    this.#cut = false;
    this.trouble();
    this.#deliver({ kind: "reconnected" }, 10);
  }

  close(): void {
    this.#stopListening();
    this.#listeners.clear();
  }

  #wrapped(name: string, part: unknown): unknown {
    if (typeof part === "function") return this.#operation(name, part as Operate);
    const operations = Object.entries(part as Record<string, Operate>);
    return Object.fromEntries(
      operations.map(([operation, operate]) => [operation, this.#operation(`${name}.${operation}`, operate)]),
    );
  }

  #operation(name: string, operate: Operate): Operate {
    const { witness, process } = this.#options;
    return (params) =>
      this.#watched(
        this.#call(name, async () => {
          const answer = await operate(params);
          witness.carriedOut({ process: process.name, operation: name, params, answer });
          return answer;
        }),
      );
  }

  async #watched<Answer>(answered: Promise<Answer>): Promise<Answer> {
    const { agenda } = this.#options.process;
    const sent = { since: agenda.now };
    this.#underWay.add(sent);
    try {
      return await answered;
    } catch (error) {
      this.trouble();
      throw error;
    } finally {
      this.#underWay.delete(sent);
      if (agenda.now - sent.since > SLOW_MS) this.trouble();
    }
  }

  #call(name: string, operate: () => Promise<unknown>): Promise<unknown> {
    const { process, network } = this.#options;
    const { calls } = this.#options.climate();
    const { chance } = process;
    const { promise, resolve, reject } = Promise.withResolvers<unknown>();
    const fail = (ms: number) => void process.plan(ms, `${name} fails`, () => reject(away()));
    const isLate = happens(chance, calls.late);
    const [thereMs, backMs] = [isLate ? chance.between(100, PATIENCE_MS) : this.#delayMs(), this.#delayMs()];
    if (this.#cut) {
      fail(chance.oneIn(2) ? thereMs : PATIENCE_MS);
      return promise;
    }
    if (this.#ails(name) || happens(chance, calls.refused)) {
      fail(thereMs);
      return promise;
    }
    if (isLate) fail(thereMs * chance.next());
    const isLost = happens(chance, calls.unanswered);
    network.plan(thereMs, `${process.name} ${name}`, () => {
      const answer = (what: string, run: () => void) => {
        this.#carriedOut(name);
        if (isLost) fail(backMs);
        else if (this.#cut) fail(PATIENCE_MS - thereMs);
        else process.plan(backMs, `${name} ${what}`, run);
      };
      operate().then(
        (value) => answer("answers", () => resolve(value)),
        (error) => answer("refuses", () => reject(error)),
      );
    });
    return promise;
  }

  #ails(name: string): boolean {
    return this.#ailing.has(name) || this.#ailing.has(name.split(".", 1)[0] ?? "");
  }

  #carriedOut(name: string): void {
    if (this.#inTheMidst?.operation !== name) return;
    const { run } = this.#inTheMidst;
    this.#inTheMidst = null;
    run();
  }

  #receive(signal: StorageSignal): void {
    const { process, climate } = this.#options;
    const { signals } = climate();
    if (this.#cut || happens(process.chance, signals.lost)) return;
    this.#deliver(signal, this.#delayMs());
    if (happens(process.chance, signals.doubled)) this.#deliver(signal, this.#delayMs());
  }

  #deliver(signal: StorageSignal, delayMs: number): void {
    const { process, witness } = this.#options;
    const arrived = Promise.withResolvers<void>();
    void this.#watched(arrived.promise);
    process.plan(delayMs, `gets the signal ${signal.kind}`, () => {
      arrived.resolve();
      witness.received(process.name, signal);
      for (const listener of this.#listeners) listener(signal);
    });
  }

  #delayMs(): number {
    const { process, climate } = this.#options;
    const { chance } = process;
    if (!happens(chance, climate().calls.slow)) return (climate().isFar ? 5 : 0.05) + chance.next() * 2;
    return chance.oneIn(8) ? chance.between(500, 9_000) : chance.between(5, 400);
  }
}
