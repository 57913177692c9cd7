import { setTimeout as delay } from "node:timers/promises";
import pg, { type ClientConfig } from "pg";
import type { FenceReason, StorageSignal } from "../../storage.ts";

const CHANNEL = "rota";
/**
 * Signals of this time go out together, in one notification: each wakes every connection that listens, and each node that it
 * reaches. The first after a pause goes out at once.
 */
const GATHER_MS = 3;
/** How long a stop waits until the last signals are sent. */
const LAST_SIGNALS_MS = 500;
/** A notification carries less than 8000 bytes. */
const PAYLOAD_MAX = 7_999;
/** A longer list of tokens is not sent: nodes find out at their next heartbeat. */
export const TOKENS_MAX = 300;
/** The same for a list of workers: their next heartbeat is answered with what they missed. */
const WORKERS_MAX = 100;
const RECONNECT_MIN_MS = 100;
const RECONNECT_MAX_MS = 5000;

interface Message {
  readonly from: string;
  readonly signals: readonly StorageSignal[];
}

/**
 * Signals between nodes: LISTEN on a connection of its own, and NOTIFY after the commit, because inside a transaction it would
 * make commits wait for each other. Signals that an exchange raises together, or that gather within `GATHER_MS`, go out together.
 * Nothing is sent while no other node is alive.
 */
export class Notifications {
  readonly #config: ClientConfig;
  readonly #self: string;
  readonly #send: (payload: string) => Promise<unknown>;
  readonly #onSignal: (signal: StorageSignal) => void;
  readonly #stopping = new AbortController();
  readonly #outgoing = new Map<string, StorageSignal>();
  #sending = false;
  #sent: Promise<void> = Promise.resolve();
  /** Ends the pause after a notification. */
  #endPause: () => void = () => {};
  #listening: Promise<void> = Promise.resolve();
  #client: pg.Client | null = null;
  /** True until a heartbeat has counted the nodes, because another node may be listening. */
  othersAlive = true;

  constructor(options: {
    config: ClientConfig;
    self: string;
    send: (channel: string, payload: string) => Promise<unknown>;
    onSignal: (signal: StorageSignal) => void;
  }) {
    this.#config = options.config;
    this.#self = options.self;
    this.#send = (payload) => options.send(CHANNEL, payload);
    this.#onSignal = options.onSignal;
  }

  /** Resolves once it listens for the first time. It reconnects after every lost connection, until `stop`. */
  async start(): Promise<void> {
    const client = await this.#connect();
    this.#listening = this.#keepListening(client);
  }

  /** Sends what waits. Call it before the connections close: others would miss what this node did last until their slow poll. */
  async sendLast(): Promise<void> {
    this.#stopping.abort();
    this.#endPause();
    await Promise.race([this.#sent, delay(LAST_SIGNALS_MS, undefined, { ref: false })]);
  }

  async stop(): Promise<void> {
    this.#stopping.abort();
    await this.#client?.end().catch(() => undefined);
    await this.#listening;
  }

  notifyOthers(signal: StorageSignal): void {
    if (!this.othersAlive) return;
    const key = signal.kind === "fenced" ? `fenced ${signal.reason}` : signal.kind;
    const waiting = this.#outgoing.get(key);
    this.#outgoing.set(key, waiting === undefined ? signal : merge(waiting, signal));
    if (isUrgent(signal)) this.#endPause();
    if (this.#sending) return;
    this.#sending = true;
    this.#sent = new Promise<void>(setImmediate).then(() => this.#flush());
  }

  async #flush(): Promise<void> {
    while (this.#outgoing.size > 0) {
      const payloads = this.#payloads([...this.#outgoing.values()]);
      this.#outgoing.clear();
      // A node that misses a signal catches up with its slow poll.
      for (const payload of payloads) await this.#send(payload).catch(() => undefined);
      const isLast = this.#stopping.signal.aborted;
      if (!isLast && ![...this.#outgoing.values()].some(isUrgent)) await this.#pause();
    }
    this.#sending = false;
  }

  /** One notification for all signals, or one for each if they are too long. */
  #payloads(signals: readonly StorageSignal[]): string[] {
    const toPayload = (some: readonly StorageSignal[]) => {
      const message: Message = { from: this.#self, signals: some };
      return JSON.stringify(message);
    };
    const together = toPayload(signals);
    return together.length <= PAYLOAD_MAX ? [together] : signals.map((signal) => toPayload([signal]));
  }

  #pause(): Promise<void> {
    return new Promise((resolve) => {
      this.#endPause = resolve;
      setTimeout(resolve, GATHER_MS).unref();
    });
  }

  async #keepListening(first: pg.Client): Promise<void> {
    const { signal } = this.#stopping;
    let client: pg.Client | null = first;
    let waitMs = RECONNECT_MIN_MS;
    while (!signal.aborted) {
      if (client !== null) await ended(client);
      await delay(waitMs, undefined, { ref: false, signal }).catch(() => undefined);
      if (signal.aborted) return;
      client = await this.#connect().catch(() => null);
      waitMs = client === null ? Math.min(waitMs * 2, RECONNECT_MAX_MS) : RECONNECT_MIN_MS;
      if (client === null) continue;
      // `stop` was called meanwhile. It has ended the previous connection, not this one.
      if (signal.aborted) await client.end().catch(() => undefined);
      else this.#onSignal({ kind: "reconnected" });
    }
  }

  async #connect(): Promise<pg.Client> {
    const client = new pg.Client(this.#config);
    // `ended` notices an error, which ends the connection. Without a handler it would end the process.
    client.on("error", () => undefined);
    client.on("notification", ({ payload }) => this.#receive(payload ?? ""));
    try {
      await client.connect();
      await client.query(`listen ${CHANNEL}`);
    } catch (error) {
      // A standby accepts connections and refuses LISTEN: each try would leave one open, until it accepts no more.
      void client.end().catch(() => undefined);
      throw error;
    }
    this.#client = client;
    return client;
  }

  #receive(payload: string): void {
    const message = parse(payload);
    if (message === null || message.from === this.#self) return;
    this.othersAlive = true;
    for (const signal of message.signals) this.#onSignal(signal);
  }
}

function ended(client: pg.Client): Promise<void> {
  return new Promise((resolve) => client.once("end", () => resolve()));
}

function merge(a: StorageSignal, b: StorageSignal): StorageSignal {
  if (a.kind === "work" && b.kind === "work") {
    if (a.lanes === undefined || b.lanes === undefined) return { kind: "work" };
    return { kind: "work", lanes: [...new Set([...a.lanes, ...b.lanes])] };
  }
  if (a.kind === "workers" && b.kind === "workers")
    return { ...a, ids: [...new Set([...a.ids, ...b.ids])].slice(0, WORKERS_MAX) };
  if (a.kind !== "fenced" || b.kind !== "fenced") return b;
  return { ...a, tokens: [...a.tokens, ...b.tokens].slice(0, TOKENS_MAX) };
}

/** Any client may notify on this channel, a newer Rota too. Unknown messages are ignored. */
function parse(payload: string): Message | null {
  try {
    const { from, signals }: { from: unknown; signals: unknown } = JSON.parse(payload);
    if (typeof from !== "string" || !Array.isArray(signals)) return null;
    return { from, signals: signals.filter(isSignal) };
  } catch {
    return null;
  }
}

/** Signals of the work itself. All others are rare and go out at once: changed settings, cancelled tasks. */
const GATHERED_KINDS: readonly StorageSignal["kind"][] = ["events", "work", "due", "release", "deliveries"];

function isUrgent({ kind }: StorageSignal): boolean {
  return !GATHERED_KINDS.includes(kind);
}

/** Signals that need nothing but their kind. */
const PLAIN_KINDS: readonly StorageSignal["kind"][] = [
  "events",
  "work",
  "due",
  "release",
  "deliveries",
  "lanes",
  "agents",
  "schedules",
  "notifications",
  "tenants",
  "keys",
  "bulks",
];

function isSignal(value: unknown): value is StorageSignal {
  if (typeof value !== "object" || value === null || !("kind" in value)) return false;
  if (value.kind === "fenced") return isFenced(value);
  if (value.kind === "work" && "lanes" in value) return isTexts(value.lanes);
  if (value.kind === "workers") return "ids" in value && Array.isArray(value.ids);
  return PLAIN_KINDS.some((kind) => kind === value.kind);
}

function isTexts(value: unknown): boolean {
  return Array.isArray(value) && value.every((each) => typeof each === "string");
}

function isFenced(value: object): boolean {
  const reasons: readonly FenceReason[] = ["cancelled", "preempted"];
  return (
    "tokens" in value &&
    Array.isArray(value.tokens) &&
    "reason" in value &&
    reasons.some((reason) => reason === value.reason)
  );
}
