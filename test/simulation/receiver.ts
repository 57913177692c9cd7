import { Dispatcher } from "undici";
import { fetchAnswer } from "../../src/outbound/fetch-answer.ts";
import type { TargetGuard } from "../../src/outbound/target-guard.ts";
import type { Actor } from "./agenda.ts";
import { type Climate, happens } from "./climate.ts";

/** What a receiver does other than accept a callback, and how often compared to the others. */
const FAULTS = { fails: 4, busy: 2, gone: 0.3, hangs: 2, "hangs up": 3, "talks on": 1 } as const;
type Manner = "takes" | keyof typeof FAULTS;

/** Those that accept it, whether or not the sender gets the response. */
const TAKING: readonly Manner[] = ["takes", "hangs up", "talks on"];
const STATUS: Partial<Record<Manner, number>> = { fails: 500, busy: 503, gone: 410 };

/** One try to deliver a callback, as the receiver saw it. */
export interface Exchange {
  /** The `webhook-id`. */
  readonly id: string;
  readonly process: string;
  /** How the task had ended, or that a batch had. */
  readonly state: string;
  readonly from: number;
  /** When either side had done with it; null while neither has. */
  until: number | null;
  /** Whether it was taken, and that was said. */
  accepted: boolean;
}

/** The receiver of callbacks, at any path. It records every request. */
export class Receiver {
  readonly exchanges: Exchange[] = [];
  readonly #climate: () => Climate;
  readonly #network: Actor;
  /** Kept as a socket would keep them: otherwise garbage collection would drop them, and their callers would wait for ever. */
  readonly #open = new Map<Exchange, Connection>();

  constructor({ climate, network }: { climate: () => Climate; network: Actor }) {
    this.#climate = climate;
    this.#network = network;
  }

  static readonly host = "receiver.test";
  static readonly url = `http://${Receiver.host}/told`;

  /** The process is gone, and whatever connections it had. */
  gone(process: string): void {
    for (const exchange of this.exchanges) if (exchange.process === process) this.#end(exchange);
  }

  /** How a process reaches it. */
  dispatcherIn(process: Actor): Dispatcher {
    return new Connection(({ headers, body }, connection) => {
      const delayMs = process.chance.next() * 3;
      this.#network.plan(delayMs, `${process.name} calls back`, () => {
        if (connection.aborted || process.isGone) return;
        const { type, taskId = "", state = type } = JSON.parse(body) as Callback;
        const id = headers["webhook-id"] ?? taskId;
        const exchange = { id, process: process.name, state: `${state}`, from: process.agenda.now };
        this.#take(process, { ...exchange, until: null, accepted: false }, connection);
      });
    });
  }

  #take(process: Actor, exchange: Exchange, connection: Connection): void {
    this.exchanges.push(exchange);
    this.#open.set(exchange, connection);
    connection.onAbort = () => this.#end(exchange);
    const { chance } = process;
    const manner: Manner = happens(chance, this.#climate().receiverFails) ? chance.weighted(FAULTS) : "takes";
    if (manner === "hangs") return;
    const longMs = chance.oneIn(8) ? chance.between(500, 9_000) : chance.between(2, 300);
    process.plan(longMs, `receiver ${manner}`, () => {
      if (connection.aborted) return;
      this.#end(exchange);
      exchange.accepted = TAKING.includes(manner);
      if (manner === "hangs up") connection.breakOff();
      else connection.answer(STATUS[manner] ?? 200, { ends: manner !== "talks on" });
    });
  }

  #end(exchange: Exchange): void {
    exchange.until ??= this.#network.agenda.now;
    this.#open.delete(exchange);
  }
}

interface Callback {
  readonly taskId?: string;
  readonly state?: string;
  readonly type?: string;
}

interface Request {
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
}

/** A connection for one request, on which nothing of the platform's network is used. */
class Connection extends Dispatcher {
  readonly #receive: (request: Request, connection: Connection) => void;
  #handler: Dispatcher.DispatchHandler = {};
  onAbort: () => void = () => {};
  aborted = false;
  readonly paused = false;
  reason: Error | null = null;
  readonly rawHeaders: Buffer[] = [];

  constructor(receive: (request: Request, connection: Connection) => void) {
    super();
    this.#receive = receive;
  }

  override dispatch(
    { headers, body }: Dispatcher.DispatchOptions,
    handler: Dispatcher.DispatchHandler,
  ): boolean {
    this.#handler = handler;
    handler.onRequestStart?.(this, {});
    void textOf(body as AsyncIterable<Uint8Array>).then((text) => {
      if (!this.aborted) this.#receive({ headers: headers as Request["headers"], body: text }, this);
    });
    return true;
  }

  abort(reason: Error): void {
    if (this.aborted) return;
    this.aborted = true;
    this.reason = reason;
    this.onAbort();
    this.#handler.onResponseError?.(this, reason);
  }

  pause(): void {}

  resume(): void {}

  answer(status: number, { ends }: { readonly ends: boolean }): void {
    this.#handler.onResponseStart?.(this, status, status === 503 ? { "retry-after": "2" } : {}, "");
    if (ends) this.#handler.onResponseEnd?.(this, {});
  }

  breakOff(): void {
    this.#handler.onResponseError?.(this, new Error("the other side hung up"));
  }
}

async function textOf(body: AsyncIterable<Uint8Array>): Promise<string> {
  const chunks: Uint8Array[] = [];
  for await (const chunk of body) chunks.push(chunk);
  return Buffer.concat(chunks).toString();
}

/** What is loaded with the first call takes real time, which there is none of in a simulation. */
export async function loadOutbound(): Promise<void> {
  const connection = new Connection((_request, { answer }) => answer.call(connection, 200, { ends: true }));
  const guard = { dispatcher: async () => connection } as unknown as TargetGuard;
  const { signal } = new AbortController();
  await fetchAnswer(Receiver.url, { method: "POST", body: "{}", signal, now: 0, guard });
}
