import type { FastifyInstance, FastifyRequest } from "fastify";

/** Beyond this many, all are forgotten: their next request counts for the key, and makes them known again. */
const KNOWN_MAX = 10_000;

/**
 * Workers have a rate limit each, besides that of their key: many workers may share a key. Only requests for a worker that the
 * key may act for count there, so that no caller gets a fresh limit by making up ids.
 */
export class WorkerBuckets {
  readonly #known = new Set<string>();

  /** Which bucket a request of this key is charged to. */
  bucketOf(request: FastifyRequest, keyId: string): string {
    const own = ownBucket(request, keyId);
    return own !== null && this.#known.has(own) ? own : keyId;
  }

  /** A request of a worker succeeded, so that the key may act for it. */
  watch(app: FastifyInstance): void {
    app.addHook("onResponse", (request, reply, done) => {
      const keyId =
        request.routeOptions.config.access === "work" ? request.callerContext?.caller.keyId : null;
      const own = keyId == null || reply.statusCode !== 200 ? null : ownBucket(request, keyId);
      if (own !== null) {
        if (this.#known.size >= KNOWN_MAX) this.#known.clear();
        this.#known.add(own);
      }
      done();
    });
  }
}

function ownBucket({ routeOptions, params }: FastifyRequest, keyId: string): string | null {
  if (routeOptions.config.access !== "work") return null;
  const { id } = (params ?? {}) as { id?: string };
  return id === undefined ? null : `${keyId} ${id}`;
}
