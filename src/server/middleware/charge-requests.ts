import type { FastifyInstance, FastifyReply, FastifyRequest, preHandlerAsyncHookHandler } from "fastify";
import type { LargeJson } from "../large-json.ts";
import type { ReadTurns } from "../read-turns.ts";
import { whenClosed } from "../when-closed.ts";
import { pageText } from "./page-text.ts";
import { costOf, isExpensive, type RequestUsage } from "./request-cost.ts";
import type { ChargedTo, RequestLimits } from "./request-limits.ts";

/** The work that a request announces before it is carried out. */
export type DeclaredWork = Partial<Pick<RequestUsage, "rows" | "dueTimes">>;

/** A response below this size changes no charge, so it is not settled. */
const SMALL_ANSWER = 16_384;
/** A page of so few rows is serialized in one go: a few milliseconds, even if the rows are as large as possible. */
const SMALL_PAGE_ROWS = 3;
/** The default size of a page, and the largest. */
const PAGE_ROWS = { usual: 100, max: 1_000 } as const;

/** What one request has been charged so far. */
export class Charge {
  readonly #limit: RequestLimits;
  #owner: ChargedTo;
  #usage: RequestUsage;
  #paid = 0;
  /** Called when the request is over. */
  readonly #leave: (() => void)[] = [];
  #isExpensive = false;

  constructor(limit: RequestLimits, owner: ChargedTo, usage: RequestUsage) {
    this.#limit = limit;
    this.#owner = owner;
    this.#usage = usage;
  }

  get owner(): ChargedTo {
    return this.#owner;
  }

  /** The bytes of the response, as far as they are known. */
  get bytesOut(): number {
    return this.#usage.bytesOut;
  }

  get isSmall(): boolean {
    return this.#paid === 1;
  }

  /** Charges the announced work before it is done. Throws `rate_limited`. */
  pay(usage: Partial<RequestUsage> = {}): void {
    const declared = { ...this.#usage, ...usage };
    const cost = costOf(declared);
    if (isExpensive(declared) && !this.#isExpensive) {
      this.onEnd(this.#limit.enter(this.owner));
      this.#isExpensive = true;
    }
    if (cost > this.#paid) this.#limit.take(this.owner, cost - this.#paid, cost);
    this.#usage = declared;
    this.#paid = Math.max(cost, this.#paid);
  }

  /** Charges the difference to the real cost afterwards. A refused request costs only what it has paid until then, or nothing. */
  settle(usage: Partial<RequestUsage>): void {
    if (this.#paid === 0) return;
    this.#usage = { ...this.#usage, ...usage };
    const cost = costOf(this.#usage);
    if (cost !== this.#paid) this.#limit.settle(this.owner, cost - this.#paid);
    this.#paid = cost;
  }

  /** Charges another bucket for the request, which gets back what it has paid. */
  moveTo(key: string): void {
    this.#limit.settle(this.#owner, -this.#paid);
    this.#owner = { ...this.#owner, key };
    this.#limit.settle(this.#owner, this.#paid);
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
export function chargeHead(request: FastifyRequest, limit: RequestLimits, owner: ChargedTo): void {
  const { headers, routeOptions } = request;
  const bytesIn = Number(headers["content-length"] ?? 0) || 0;
  const rows = routeOptions.config.paged === true ? rowsAsked(request.query) : 0;
  request.charge = new Charge(limit, owner, { bytesIn, bytesOut: 0, rows, looked: 0, dueTimes: 0 });
  request.charge.pay();
}

/** Charges what is known only later: the body and the response. A request without a key is free. */
export function chargeRequests(
  app: FastifyInstance,
  { pageTurns, largeJson }: { readonly pageTurns: ReadTurns; readonly largeJson: LargeJson },
): void {
  app.decorateRequest("charge", null);
  app.addHook("onRoute", (route) => {
    const { declares, paged } = route.config ?? {};
    const before: preHandlerAsyncHookHandler[] = [];
    if (declares !== undefined) {
      before.push(async (request, reply) => {
        request.charge?.pay(declares(request.body, request.query));
        endWhenClosed(request, reply);
      });
    }
    if (paged) before.push((request, reply) => takeTurn(pageTurns, request, reply));
    if (before.length > 0) route.preHandler = before;
    if (paged) {
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
  // Not asynchronous: every request passes here. A large task that was read is serialized in another turn of the event loop.
  app.addHook("preSerialization", ({ charge }, _reply, answer, done) => {
    const turn = charge === null ? undefined : largeJson.turnFor(charge.owner.tenant, charge.bytesOut);
    if (turn === undefined) done(null, answer);
    else turn.then(() => done(null, answer), done);
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

/** Ends the charge of requests for which no hook runs: streams, and callers that disconnect. */
function endWhenClosed({ charge }: FastifyRequest, reply: FastifyReply): void {
  if (charge !== null && !charge.isSmall) whenClosed(reply.raw, () => charge.end());
}

/** Pages of one key and of one tenant take turns. Nothing is read for a caller that has disconnected meanwhile. */
async function takeTurn(turns: ReadTurns, { charge }: FastifyRequest, reply: FastifyReply): Promise<void> {
  if (charge === null) return;
  const gone = new AbortController();
  whenClosed(reply.raw, () => {
    gone.abort();
    charge.end();
  });
  const leave = await turns.enter(charge.owner, gone.signal).catch(() => null);
  if (leave !== null) charge.onEnd(leave);
  if (!gone.signal.aborted) return;
  charge.end();
  reply.hijack();
}

/** A limit that is not a number is refused later. Until then it costs as much as a default page. */
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
