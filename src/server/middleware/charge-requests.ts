import type { FastifyInstance, FastifyReply, FastifyRequest } from "fastify";
import { KeyTurns } from "../key-turns.ts";
import { whenClosed } from "../when-closed.ts";
import { pageText } from "./page-text.ts";
import type { RateLimit } from "./rate-limit.ts";
import { costOf, isExpensive, type RequestUsage } from "./request-cost.ts";

/** What a route will do, as far as a request says so before it is carried out. */
export type DeclaredWork = Partial<Pick<RequestUsage, "rows" | "dueTimes">>;

/** Pages that are read at once for one key. PostgreSQL reads them on the few connections that all keys share. */
const PAGES_PER_KEY_MAX = 2;
/** Answers below this change no cost that was charged: settling is then a waste. */
const SMALL_ANSWER = 16_384;
/** So few rows are written in one go: a few milliseconds, also if they are the largest there are. */
const SMALL_PAGE_ROWS = 3;
/** The size of a page that does not name one, and the largest there is. */
const PAGE_ROWS = { usual: 100, max: 1_000 } as const;

/** What one request has been charged so far. */
export class Charge {
  readonly #limit: RateLimit;
  readonly keyId: string;
  #usage: RequestUsage;
  #paid = 0;
  /** What is called when the request is over. */
  readonly #leave: (() => void)[] = [];
  #isExpensive = false;

  constructor(limit: RateLimit, keyId: string, usage: RequestUsage) {
    this.#limit = limit;
    this.keyId = keyId;
    this.#usage = usage;
  }

  get isSmall(): boolean {
    return this.#paid === 1;
  }

  /** Before the work: what it is said to cost. Throws `rate_limited`. */
  pay(usage: Partial<RequestUsage> = {}): void {
    const declared = { ...this.#usage, ...usage };
    const cost = costOf(declared);
    if (isExpensive(declared) && !this.#isExpensive) {
      this.onEnd(this.#limit.enter(this.keyId));
      this.#isExpensive = true;
    }
    if (cost > this.#paid) this.#limit.take(this.keyId, cost - this.#paid, cost);
    this.#usage = declared;
    this.#paid = Math.max(cost, this.#paid);
  }

  /** After it: what it did cost. A request that was refused costs nothing, or what it has paid until then. */
  settle(usage: Partial<RequestUsage>): void {
    if (this.#paid === 0) return;
    this.#usage = { ...this.#usage, ...usage };
    const cost = costOf(this.#usage);
    if (cost !== this.#paid) this.#limit.settle(this.keyId, cost - this.#paid);
    this.#paid = cost;
  }

  /** Adds entries that were read. They are charged with the response. */
  looked(entries: number): void {
    this.#usage = { ...this.#usage, looked: this.#usage.looked + entries };
  }

  onEnd(leave: () => void): void {
    this.#leave.push(leave);
  }

  /** Lets the next expensive request of the key begin, and the next page be read. */
  end(): void {
    for (const leave of this.#leave.splice(0)) leave();
  }
}

/** Charges a request of a key with what its head announces: its body, and the page that it asks for. Throws `rate_limited`. */
export function chargeHead(request: FastifyRequest, limit: RateLimit, keyId: string): void {
  const { headers, routeOptions } = request;
  const bytesIn = Number(headers["content-length"] ?? 0) || 0;
  const rows = routeOptions.config.paged === true ? rowsAsked(request.query) : 0;
  request.charge = new Charge(limit, keyId, { bytesIn, bytesOut: 0, rows, looked: 0, dueTimes: 0 });
  request.charge.pay();
}

/** Charges what becomes known later: of a body, and of the answer. Without a key nothing is charged. */
export function chargeRequests(app: FastifyInstance): void {
  const pageTurns = new KeyTurns(PAGES_PER_KEY_MAX);
  app.decorateRequest("charge", null);
  app.addHook("onRoute", (route) => {
    const { declares, paged } = route.config ?? {};
    if (declares !== undefined) {
      route.preHandler = async (request: FastifyRequest, reply: FastifyReply) => {
        request.charge?.pay(declares(request.body, request.query));
        endWhenClosed(request, reply);
      };
    }
    if (paged) {
      route.preHandler = (request: FastifyRequest, reply: FastifyReply) =>
        takeTurn(pageTurns, request, reply);
      route.preSerialization = async (
        { charge }: FastifyRequest,
        reply: FastifyReply,
        answer: unknown,
      ): Promise<unknown> => {
        const rows = rowsOf(answer);
        charge?.settle({ rows });
        if (rows <= SMALL_PAGE_ROWS) return answer;
        reply.serializer(String);
        return pageText(answer as object);
      };
    }
  });
  // Not asynchronous: every request passes here.
  app.addHook("onSend", ({ charge }, _reply, payload, done) => {
    if (charge !== null) {
      const bytesOut = sizeOf(payload);
      if (!charge.isSmall || bytesOut >= SMALL_ANSWER) charge.settle({ bytesOut });
      charge.end();
    }
    done();
  });
}

/** The body came without its length. Throws `rate_limited`. */
export function chargeBody(request: FastifyRequest, bytesIn: number): void {
  if (request.headers["content-length"] === undefined) request.charge?.pay({ bytesIn });
}

/** What is answered by no hook, such as a stream, or to nobody, ends too. */
function endWhenClosed({ charge }: FastifyRequest, reply: FastifyReply): void {
  if (charge !== null && !charge.isSmall) whenClosed(reply.raw, () => charge.end());
}

/** Before a page is read: those of one key wait for each other. Nothing is read for a caller who has gone meanwhile. */
async function takeTurn(turns: KeyTurns, { charge }: FastifyRequest, reply: FastifyReply): Promise<void> {
  if (charge === null) return;
  const gone = new AbortController();
  whenClosed(reply.raw, () => {
    gone.abort();
    charge.end();
  });
  const leave = await turns.enter(charge.keyId, gone.signal).catch(() => null);
  if (leave !== null) charge.onEnd(leave);
  if (!gone.signal.aborted) return;
  charge.end();
  reply.hijack();
}

/** What is no number is refused later; until then it costs what a usual page does. */
function rowsAsked(query: unknown): number {
  const limit = Number((query as { limit?: unknown } | undefined)?.limit);
  return limit > 0 ? Math.min(limit, PAGE_ROWS.max) : PAGE_ROWS.usual;
}

function rowsOf(answer: unknown): number {
  const count = (answer as { count?: unknown } | null | undefined)?.count;
  return typeof count === "number" ? count : 0;
}

function sizeOf(payload: unknown): number {
  return typeof payload === "string" || Buffer.isBuffer(payload) ? payload.length : 0;
}
