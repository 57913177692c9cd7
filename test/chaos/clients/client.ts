import { setTimeout as delay } from "node:timers/promises";
import type { Chance } from "../chance.ts";
import type { Acknowledgement } from "../history.ts";
import type { Ledger } from "../ledger.ts";
import type { Receivers } from "../receivers.ts";

/** After this time without a response, a client takes it for lost. */
const PATIENCE_MS = 2_500;
/** A client that gets no response for this long after the end will never get one. */
const NEVER_MS = 60_000;
/** Longer than any node waits for its database before it responds. */
const LAST_ANSWER_MS = 60_000;
const AWAY_PAUSE_MS = 100;

export interface ClientDependencies {
  readonly chance: Chance;
  readonly ledger: Ledger;
  /** The receivers of callbacks. */
  readonly receivers: Receivers;
  /** Where the nodes are, up or not. */
  readonly urls: readonly string[];
  /** Its API key. */
  readonly key: string;
  /** No client begins anything new after this. */
  readonly stop: AbortSignal;
}

export interface Answered {
  readonly status: number;
  // biome-ignore lint/suspicious/noExplicitAny: a client knows what it asked for.
  readonly body: any;
}

interface Sent {
  readonly method: string;
  readonly json?: unknown;
  /** Null: none. */
  readonly key: string | null;
}

type Knocking = Partial<Sent> & { readonly expected: number };

/** A client of Rota: makes one request after the other until it is stopped. */
export abstract class Client {
  protected readonly chance: Chance;
  protected readonly ledger: Ledger;
  protected readonly receivers: Receivers;
  #achieved = false;
  /** Requests whose response was taken for lost: a node may still carry them out. */
  readonly #givenUp: Promise<unknown>[] = [];
  readonly #urls: readonly string[];
  readonly #key: string;
  readonly #stop: AbortSignal;

  constructor({ chance, ledger, receivers, urls, key, stop }: ClientDependencies) {
    this.chance = chance.fork(this.constructor.name);
    this.ledger = ledger;
    this.receivers = receivers;
    this.#urls = urls;
    this.#key = key;
    this.#stop = stop;
  }

  /** The longest wait between two steps. */
  protected abstract readonly pauseMs: number;

  protected abstract step(): Promise<void>;

  /**
   * However slow the machine is, each client has been answered something before it stops, and when it stops no node has a
   * request of it left to carry out: the checks read the log once and for all.
   */
  async run(): Promise<void> {
    let giveUpAt = Number.POSITIVE_INFINITY;
    this.#stop.addEventListener("abort", () => {
      giveUpAt = performance.now() + NEVER_MS;
    });
    while (!this.#isOver) {
      if (performance.now() > giveUpAt) throw new Error(`${this.constructor.name} was answered nothing`);
      await this.step();
      await delay(this.chance.between(1, this.pauseMs));
    }
    await Promise.allSettled(this.#givenUp);
  }

  get #isOver(): boolean {
    return this.#stop.aborted && this.hasDoneItsPart;
  }

  /** Whether it may stop: a run in which it did nothing would prove nothing. */
  protected get hasDoneItsPart(): boolean {
    return this.#achieved;
  }

  /** How many nodes there are, up or not. */
  protected get nodes(): number {
    return this.#urls.length;
  }

  /** Records a response. */
  protected note(acknowledgement: Acknowledgement): void {
    this.#achieved = true;
    this.ledger.acknowledged.push(acknowledgement);
  }

  /** The URL for a callback: another one each time, and only for some of the tasks. */
  protected callbackUrl(field: string, oneIn: number): Readonly<Record<string, string>> {
    return this.chance.oneIn(oneIn) ? { [field]: this.receivers.newUrl(this.chance) } : {};
  }

  /** Requests what it must not get, and records the response. `key` null: without a key. */
  protected async knock(
    path: string,
    { method = "GET", json, expected, key = this.#key }: Knocking,
  ): Promise<void> {
    const answered = await this.#send(path, { method, json, key });
    if (answered === null) return;
    this.#achieved = true;
    this.ledger.knocks.push({ asked: `${method} ${path}`, expected, status: answered.status });
  }

  /** Sends a request to any node; null: the outcome is unknown. */
  protected async ask(
    path: string,
    json?: unknown,
    method = json === undefined ? "GET" : "POST",
  ): Promise<Answered | null> {
    const answered = await this.#send(path, { method, json, key: this.#key });
    if (answered !== null && [401, 403].includes(answered.status))
      this.ledger.knocks.push({ asked: `${method} ${path}`, expected: 200, status: answered.status });
    return answered;
  }

  async #send(path: string, { method, json, key }: Sent): Promise<Answered | null> {
    const url = this.chance.pick(this.#urls) + path;
    const asked = request(url, { method, json, key });
    try {
      const { response, body } = await Promise.race([asked, lost()]);
      // A full disk or a lost connection: it may have been carried out all the same.
      if (response.status === 503) this.ledger.unanswered += 1;
      else if (response.status >= 400) this.ledger.refused += 1;
      return response.status === 503 ? null : { status: response.status, body };
    } catch {
      this.#givenUp.push(asked);
      this.ledger.unanswered += 1;
      await delay(AWAY_PAUSE_MS);
      return null;
    }
  }

  /** Repeats a request until a node responds, also after it was stopped: for what cannot be left half done. */
  protected async insist(path: string, json: unknown, method = "POST"): Promise<Answered> {
    for (;;) {
      const answered = await this.ask(path, json, method);
      if (answered !== null) return answered;
    }
  }

  /** Repeats a request until a node responds: for what may be repeated. Null: it was stopped first. */
  protected async askUntilAnswered(path: string, json: unknown, method = "POST"): Promise<Answered | null> {
    while (!this.#isOver) {
      const answered = await this.ask(path, json, method);
      if (answered !== null) return answered;
    }
    return null;
  }
}

async function request(url: string, { method, json, key }: Sent) {
  const response = await fetch(url, {
    method,
    signal: AbortSignal.timeout(LAST_ANSWER_MS),
    headers: {
      ...(key === null ? {} : { authorization: `Bearer ${key}` }),
      ...(json === undefined ? {} : { "content-type": "application/json" }),
    },
    ...(json === undefined ? {} : { body: JSON.stringify(json) }),
  });
  // biome-ignore lint/suspicious/noExplicitAny: a client knows what it asked for.
  const body: any = await response.json();
  return { response, body };
}

async function lost(): Promise<never> {
  await delay(PATIENCE_MS, undefined, { ref: false });
  throw new Error(`no answer within ${PATIENCE_MS} ms`);
}
