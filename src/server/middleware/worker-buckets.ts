import type { FastifyInstance, FastifyRequest } from "fastify";

/** Beyond this many, all are forgotten: their next request counts for the key, and makes them known again. */
const KNOWN_MAX = 10_000;

/**
 * Workers have a rate limit each, besides that of their key: many workers may share a key. Only requests for a worker that the
 * key may act for count there, so that no caller gets a fresh limit by making up ids. A request that names an attempt counts for the
 * worker of that attempt, which is known afterwards: the key gets back what it paid.
 */
export class WorkerBuckets {
  readonly #known = new Set<string>();
  /** The buckets of the workers of attempts, by key and attempt token. */
  readonly #ofAttempt = new Map<string, string>();

  /** Which bucket a request of this key is charged to. */
  bucketOf(request: FastifyRequest, keyId: string): string {
    const { id, token } = namedBy(request);
    const own =
      id === undefined ? this.#ofAttempt.get(bucketName(keyId, token ?? "")) : bucketName(keyId, id);
    return own !== undefined && this.#known.has(own) ? own : keyId;
  }

  /** A request of a worker succeeded, so that the key may act for it. */
  watch(app: FastifyInstance): void {
    app.decorateRequest("attemptWorker", null);
    app.addHook("onResponse", (request, reply, done) => {
      const keyId = request.callerContext?.caller.keyId ?? null;
      if (keyId !== null && reply.statusCode === 200) this.#learn(request, keyId);
      done();
    });
  }

  #learn(request: FastifyRequest, keyId: string): void {
    const { attemptWorker, charge } = request;
    const { id = attemptWorker, token } = namedBy(request);
    if (id === null) return;
    const own = bucketName(keyId, id);
    if (this.#known.size >= KNOWN_MAX) this.#known.clear();
    this.#known.add(own);
    if (token === undefined) return;
    if (this.#ofAttempt.size >= KNOWN_MAX) this.#ofAttempt.clear();
    this.#ofAttempt.set(bucketName(keyId, token), own);
    if (charge !== null && charge.owner.key !== own) charge.moveTo(own);
  }
}

/** The worker or the attempt that a request of a worker names. */
function namedBy({ routeOptions, params }: FastifyRequest): {
  readonly id?: string | undefined;
  readonly token?: string | undefined;
} {
  if (routeOptions.config.access !== "work") return {};
  const { id, token } = (params ?? {}) as { id?: string; token?: string };
  return { id, token };
}

function bucketName(keyId: string, name: string): string {
  return `${keyId} ${name}`;
}
