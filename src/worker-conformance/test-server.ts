import { randomBytes, randomUUID } from "node:crypto";
import { once } from "node:events";
import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import type { Call, Fault, Received, TestAttempt, TestRegistration } from "./attempts.ts";
import { faultsOf } from "./check-request.ts";

/** The durations of the test server: short, so that a run of all behaviours takes seconds. */
export const TEST_HEARTBEAT_MS = 500;
const TEST_LEASE_MS = 15_000;
const TEST_MAX_WAIT_S = 2;
/** As Rota: a larger body is refused with 413. */
const BODY_BYTES_MAX = 1_048_576;

/** A server that speaks the worker protocol, keeps everything in memory, and does to requests what a test asks for. */
export class TestServer {
  readonly key = `rota_${randomBytes(16).toString("hex")}`;
  /** Every request, in order of arrival. */
  readonly received: Received[] = [];
  /** What was wrong with requests: the worker sent something that Rota would refuse. */
  readonly faults: string[] = [];
  readonly registrations = new Map<string, TestRegistration>();
  readonly attempts = new Map<string, TestAttempt>();
  /** The most attempts that a claim asked for beyond the free slots of the worker; 0: none did. */
  overAsked = 0;
  /** The most claims that were open at once. */
  openClaimsMax = 0;
  readonly #server: Server;
  readonly #claims = new Map<string, string[]>();
  readonly #pending: { readonly call: Call; readonly fault: Fault; times: number }[] = [];
  readonly #polls = new Set<() => void>();
  #deleted = 0;

  constructor() {
    this.#server = createServer((request, response) => void this.#serve(request, response));
  }

  /** `port`: 0 for a free one; after `close` the old one may be used again. */
  async listen(port = 0): Promise<void> {
    this.#server.listen(port, "127.0.0.1");
    await once(this.#server, "listening");
  }

  get port(): number {
    return (this.#server.address() as AddressInfo).port;
  }

  /** Ends all connections. The state stays. */
  async close(): Promise<void> {
    if (!this.#server.listening) return;
    const closed = once(this.#server, "close");
    this.#server.close();
    this.#server.closeAllConnections();
    await closed;
  }

  /** How many registrations were deleted by the worker. */
  get deleted(): number {
    return this.#deleted;
  }

  /** Queues a task for the agents of the worker. */
  submit(message: string): TestAttempt {
    const attempt: TestAttempt = {
      token: randomBytes(18).toString("base64url"),
      taskId: `tsk_${randomUUID().replaceAll("-", "")}`,
      agentId: [...this.registrations.values()].at(-1)?.agents[0] ?? "conformance",
      message,
      state: "queued",
      finishes: 0,
    };
    this.attempts.set(attempt.token, attempt);
    this.#wake();
    return attempt;
  }

  /** The next requests of this kind meet a fault. */
  disturb(call: Call, fault: Fault, { times = 1 }: { readonly times?: number } = {}): void {
    this.#pending.push({ call, fault, times });
  }

  /** Forgets the worker, as Rota does with one that was lost. It has to register again. */
  forgetWorkers(): void {
    this.registrations.clear();
    this.#wake();
  }

  /** As `POST /v1/workers/{id}/drain` does. */
  drain(): void {
    for (const registration of this.registrations.values()) registration.drain = true;
    this.#wake();
  }

  requests(call: Call): readonly Received[] {
    return this.received.filter((request) => request.call === call);
  }

  #wake(): void {
    for (const poll of [...this.#polls]) poll();
  }

  async #serve(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const route = routeOf(request);
    // Not every server has streams of signals: a worker must do without them.
    if (isForSignals(request)) return send(response, 404, { code: "not_found", error: "no such route" });
    if (route === null) {
      this.faults.push(`${request.method} ${request.url} is no call of the protocol`);
      return send(response, 404, { code: "not_found", error: "no such route" });
    }
    const text = await bodyOf(request);
    if (text === null) {
      this.received.push({ call: route.call, at: performance.now(), body: {} });
      return send(response, 413, { code: "body_too_large", error: "the body is larger than 1 MiB" });
    }
    const body = toListBody(route, parse(text));
    const received: Received = { call: route.call, at: performance.now(), body };
    this.received.push(received);
    response.once("finish", () => {
      received.answeredAt = performance.now();
    });
    if (request.headers.authorization !== `Bearer ${this.key}`) {
      this.faults.push(`${route.call}: no \`Authorization: Bearer\` with the key of ROTA_KEY`);
      return send(response, 401, { code: "unauthorized", error: "unknown key" });
    }
    const wrong = faultsOf(route.call, body);
    if (wrong.length > 0) {
      this.faults.push(...wrong.map((fault) => `${route.call}: ${fault}`));
      return send(response, 400, { code: "invalid_field", error: wrong.join("; ") });
    }
    await this.#answer(route, body, request, response);
  }

  async #answer(route: Route, body: Body, request: IncomingMessage, response: ServerResponse): Promise<void> {
    const fault = this.#fault(route.call, ["refuse", "answer"]);
    if (fault?.kind === "refuse") {
      const retryAfter = fault.retryAfterSec;
      return send(
        response,
        fault.status,
        { code: fault.code, error: `refused by the test: ${fault.code}`, retryable: fault.status >= 429 },
        retryAfter === undefined ? {} : { "retry-after": String(retryAfter) },
      );
    }
    if (fault?.kind === "answer") return send(response, 200, fault.answer);
    const isKnown = route.workerId === undefined || this.registrations.has(route.workerId);
    if (!isKnown) return send(response, 404, { code: "unknown_worker", error: "unknown worker" });
    const answer = await this.#carryOut(route, body, request);
    // Looked up only now: a claim may have waited for its task since before the test asked for the fault.
    const isLost = answer === null || this.#fault(route.call, ["lose-answer"]) !== undefined;
    if (isLost) return void request.socket.destroy();
    send(response, route.call === "register" ? 201 : 200, { ...answer, fieldOfLater: { some: "value" } });
  }

  #fault(call: Call, kinds: readonly Fault["kind"][]): Fault | undefined {
    const index = this.#pending.findIndex(
      (pending) => pending.call === call && kinds.includes(pending.fault.kind),
    );
    const pending = this.#pending[index];
    if (pending === undefined) return undefined;
    pending.times -= 1;
    if (pending.times <= 0) this.#pending.splice(index, 1);
    return pending.fault;
  }

  /** Null: the worker closed the connection meanwhile. */
  async #carryOut(
    route: Route,
    body: Body,
    request: IncomingMessage,
  ): Promise<Record<string, unknown> | null> {
    switch (route.call) {
      case "register":
        return this.#register(body);
      case "claim":
        return this.#claim(route.workerId as string, body, request);
      case "heartbeat":
        return this.#heartbeat(route.workerId, body);
      case "finish":
        return this.#finish(body);
      case "delete":
        return this.#delete(route.workerId as string);
      case "dependency":
        return { result: null };
      case "session":
        return { session: null };
    }
  }

  #register(body: Body): Record<string, unknown> {
    const instanceId = body["instanceId"] as string | undefined;
    const known = [...this.registrations.values()].find(
      (registration) => instanceId !== undefined && registration.instanceId === instanceId,
    );
    const workerId = known?.workerId ?? `wrk_${randomBytes(8).toString("hex")}`;
    this.registrations.set(workerId, {
      workerId,
      instanceId,
      agents: body["agents"] as string[],
      slots: body["slots"] as number,
      drain: false,
    });
    return {
      workerId,
      leaseMs: TEST_LEASE_MS,
      heartbeatMs: TEST_HEARTBEAT_MS,
      maxWaitS: TEST_MAX_WAIT_S,
      now: WRONG_NOW,
    };
  }

  async #claim(
    workerId: string,
    body: Body,
    request: IncomingMessage,
  ): Promise<Record<string, unknown> | null> {
    const { claimId, max, waitS = 0 } = body as { claimId: string; max: number; waitS?: number };
    const untilMs = performance.now() + Math.min(waitS, TEST_MAX_WAIT_S) * 1_000;
    this.openClaimsMax = Math.max(this.openClaimsMax, this.#polls.size + 1);
    for (;;) {
      if (request.socket.destroyed) return null;
      const registration = this.registrations.get(workerId);
      if (registration === undefined) return { attempts: [] };
      if (registration.drain) return { attempts: [], drain: true };
      const attempts = this.#take(registration, claimId, max);
      if (attempts.length > 0) return { attempts: attempts.map(toWire) };
      const leftMs = untilMs - performance.now();
      if (leftMs <= 0) return { attempts: [] };
      await this.#park(leftMs, request);
    }
  }

  /** Until a task comes, the time is up or the worker is gone. */
  #park(ms: number, request: IncomingMessage): Promise<void> {
    return new Promise((resolve) => {
      const end = (): void => {
        clearTimeout(timer);
        request.socket.off("close", end);
        this.#polls.delete(end);
        resolve();
      };
      const timer = setTimeout(end, ms);
      request.socket.once("close", end);
      this.#polls.add(end);
    });
  }

  #take({ workerId, slots }: TestRegistration, claimId: string, max: number): TestAttempt[] {
    const before = (this.#claims.get(claimId) ?? []).flatMap((token) => this.attempts.get(token) ?? []);
    const live = before.filter(({ state }) => state === "held");
    if (live.length > 0) return live;
    const held = [...this.attempts.values()].filter(
      (attempt) => attempt.state === "held" && attempt.workerId === workerId,
    ).length;
    this.overAsked = Math.max(this.overAsked, held + max - slots);
    const queued = [...this.attempts.values()].filter(({ state }) => state === "queued");
    const taken = queued.slice(0, Math.max(0, Math.min(max, slots - held)));
    for (const attempt of taken) Object.assign(attempt, { state: "held", workerId });
    if (taken.length > 0)
      this.#claims.set(
        claimId,
        taken.map(({ token }) => token),
      );
    return taken;
  }

  #heartbeat(workerId: string | undefined, body: Body): Record<string, unknown> {
    const answers = (body["attempts"] as Body[]).map(({ attemptToken }) => {
      const attempt = this.attempts.get(attemptToken as string);
      if (attempt?.state === "held" && attempt.cancel === undefined) return { attemptToken, ok: true };
      const cancel = attempt?.cancel ?? "unknown";
      if (attempt?.state === "held") attempt.state = "ended";
      return { attemptToken, ok: false, cancel };
    });
    const drain = workerId !== undefined && this.registrations.get(workerId)?.drain === true;
    return { attempts: answers, drain, now: WRONG_NOW, leaseMs: TEST_LEASE_MS };
  }

  #finish(body: Body): Record<string, unknown> {
    const answers = (body["attempts"] as Body[]).map((finish) => {
      const { attemptToken, outcome, result, error, retryable } = finish as unknown as Finish;
      const attempt = this.attempts.get(attemptToken);
      if (attempt === undefined) return { attemptToken, recorded: false, reason: "unknown" };
      attempt.finishes += 1;
      if (attempt.outcome !== undefined) {
        const isSame =
          attempt.outcome === outcome && JSON.stringify(attempt.result) === JSON.stringify(result);
        attempt.isChanged ||= !isSame;
        return { attemptToken, recorded: true, repeated: true };
      }
      if (attempt.state !== "held")
        return { attemptToken, recorded: false, reason: attempt.cancel ?? "fenced" };
      Object.assign(attempt, { state: "ended", outcome, result, error, retryable });
      return { attemptToken, recorded: true };
    });
    return { attempts: answers };
  }

  #delete(workerId: string): Record<string, unknown> {
    this.registrations.delete(workerId);
    this.#deleted += 1;
    const held = [...this.attempts.values()].filter(
      (attempt) => attempt.state === "held" && attempt.workerId === workerId,
    );
    for (const attempt of held) attempt.state = "queued";
    return { released: held.map(({ taskId }) => taskId) };
  }
}

/** Years off: a worker that compares clocks would do nothing right. */
const WRONG_NOW = "2001-01-01T00:00:00.000Z";

type Body = Readonly<Record<string, unknown>>;

interface Finish {
  readonly attemptToken: string;
  readonly outcome: string;
  readonly result?: unknown;
  readonly error?: string;
  readonly retryable?: boolean;
}

interface Route {
  readonly call: Call;
  readonly workerId?: string;
  /** The flat form for one attempt. */
  readonly attemptToken?: string;
}

function routeOf({ method, url = "" }: IncomingMessage): Route | null {
  const parts = url
    .split("?", 1)[0]
    ?.split("/")
    .slice(1)
    .map((part) => decodeURIComponent(part));
  const [version, kind, id, call, ...rest] = parts ?? [];
  if (version !== "v1") return null;
  if (kind === "workers" && id === undefined) return method === "POST" ? { call: "register" } : null;
  if (kind === "workers" && call === undefined)
    return method === "DELETE" ? { call: "delete", workerId: id as string } : null;
  if (kind === "attempts" && call === "dependencies" && rest.length === 1 && method === "GET")
    return { call: "dependency", attemptToken: id as string };
  if (kind === "attempts" && call === "session" && rest.length === 0 && method === "GET")
    return { call, attemptToken: id as string };
  if (method !== "POST" || rest.length > 0) return null;
  if (kind === "workers" && (call === "claim" || call === "heartbeat" || call === "finish"))
    return { call, workerId: id as string };
  if (kind === "attempts" && (call === "heartbeat" || call === "finish"))
    return { call, attemptToken: id as string };
  return null;
}

function isForSignals({ method, url = "" }: IncomingMessage): boolean {
  return method === "GET" && /^\/v1\/workers\/[^/]+\/signals$/.test(url);
}

/** A flat body as the form with a list. */
function toListBody({ call, attemptToken }: Route, body: Body): Body {
  if (attemptToken === undefined || call === "dependency" || call === "session") return body;
  return { attempts: [{ attemptToken, ...body }] };
}

/** Null: longer than Rota accepts. */
async function bodyOf(request: IncomingMessage): Promise<string | null> {
  const chunks: Buffer[] = [];
  let bytes = 0;
  try {
    for await (const chunk of request) {
      bytes += (chunk as Buffer).byteLength;
      if (bytes <= BODY_BYTES_MAX) chunks.push(chunk as Buffer);
    }
  } catch {
    // The worker closed the connection: what it sent so far is no request.
  }
  return bytes > BODY_BYTES_MAX ? null : Buffer.concat(chunks).toString();
}

function parse(text: string): Body {
  try {
    const value: unknown = text === "" ? {} : JSON.parse(text);
    return typeof value === "object" && value !== null ? (value as Body) : { notAnObject: value };
  } catch {
    return { notJson: text.slice(0, 100) };
  }
}

function toWire({ token, taskId, agentId, message, workerId }: TestAttempt): Record<string, unknown> {
  return {
    attemptToken: token,
    taskToken: `rtt_${taskId}`,
    number: 1,
    leaseMs: TEST_LEASE_MS,
    timeoutMs: 120_000,
    tenantId: "default",
    fieldOfLater: 1,
    task: {
      taskId,
      agentId,
      kind: "message",
      message,
      lane: "main",
      priority: 2,
      state: "assigned",
      position: 1,
      createdAt: WRONG_NOW,
      metadata: { from: "conformance" },
      retryPolicy: { maxRetries: 3, backoffMs: 1_000, backoffMultiplier: 2, maxBackoffMs: 60_000, jitter: 0 },
      retryCount: 0,
      attempts: [
        { number: 1, startedAt: WRONG_NOW, endedAt: null, outcome: null, error: null, node: workerId },
      ],
      fieldOfLater: [],
    },
  };
}

function send(
  response: ServerResponse,
  status: number,
  body: Record<string, unknown>,
  headers: Record<string, string> = {},
): void {
  if (response.destroyed) return;
  response.writeHead(status, { "content-type": "application/json", ...headers });
  response.end(JSON.stringify(body));
}
