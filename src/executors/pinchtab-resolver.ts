import { preview } from "../model/input/field-checks.ts";
import { SharedCall } from "../outbound/shared-call.ts";
import { baseOf } from "./base-url.ts";
import type { CallOptions } from "./call-out.ts";
import { HttpError, PermanentError } from "./errors.ts";
import { lookUpPlaces } from "./pinchtab-lookup.ts";
import type { Places } from "./pinchtab-places.ts";
import { cannotResolve, type ResolveTabParams, type TabResolver, unresolved } from "./tab-resolver.ts";

/** Tabs seldom move, and one that did is looked for again: this is there to spare a busy server. */
const DEFAULT_CACHE_SEC = 5;

export interface PinchTabResolverOptions extends CallOptions {
  /** Of the PinchTab server. */
  readonly url: string;
  /** How long an answer is remembered; 0: not at all. */
  readonly cacheSec?: number | undefined;
}

/** One question to the server, which all who want to know something meanwhile share. */
interface Lookup {
  /** Counts up: of two, the higher one saw the later state of things. */
  readonly number: number;
  readonly call: SharedCall<Places>;
}

/** What the last lookup found. */
interface Remembered {
  readonly number: number;
  readonly places: Places;
  /** When it began. */
  readonly at: number;
  /** Tabs that were not where it says they are. */
  readonly doubted: Set<string>;
}

/**
 * Asks a PinchTab server which of its instances has a tab. Each answer tells it of all tabs, and is remembered for a
 * little while.
 */
export class PinchTabResolver implements TabResolver {
  readonly #options: PinchTabResolverOptions;
  readonly #base: string;
  readonly #cacheMs: number;
  /** The one under way, or the last one, of each kind. */
  readonly #lookups = new Map<"remembered" | "fresh", Lookup>();
  /** How many lookups have begun. */
  #begun = 0;
  #remembered: Remembered | null = null;

  constructor(options: PinchTabResolverOptions) {
    this.#options = options;
    this.#base = baseOf(options.url);
    this.#cacheMs = (options.cacheSec ?? DEFAULT_CACHE_SEC) * 1_000;
  }

  async resolve(params: ResolveTabParams): Promise<string> {
    const remembered = this.#recall(params);
    if (remembered !== undefined) return remembered;
    let places: Places;
    try {
      places = await this.#findPlaces(params);
    } catch (error) {
      params.signal.throwIfAborted();
      throw lookupFailure(params.tabId, error);
    }
    return this.#baseIn(places, params.tabId) ?? this.#fail(places, params.tabId);
  }

  /** Somebody else who found nothing there may already have looked for it again. */
  #recall({ tabId, notAt }: ResolveTabParams): string | undefined {
    if (this.#remembered === null) return undefined;
    const { places, at, doubted } = this.#remembered;
    if (this.#options.clock.monotonic() - at >= this.#cacheMs) return undefined;
    const base = this.#baseIn(places, tabId);
    if (base !== undefined && base === notAt) doubted.add(tabId);
    return doubted.has(tabId) ? undefined : base;
  }

  /**
   * A lookup that is under way will do if it finds what is wanted. If not, it may have asked before the tab was opened or
   * moved, and only one that began after this call can say that there is none. The server itself remembers tabs for a while:
   * a tab that it does not know, or that was not where it said, counts as gone only when it has looked anew.
   */
  async #findPlaces({ tabId, signal, notAt }: ResolveTabParams): Promise<Places> {
    const begunBefore = this.#begun;
    let fresh = notAt !== undefined;
    for (;;) {
      const lookup = this.#joinLookup(fresh);
      const places = await lookup.call.wait(signal);
      const base = this.#baseIn(places, tabId);
      if (base !== undefined && base !== notAt) return places;
      if (lookup.number <= begunBefore) continue;
      if (fresh || isListed(places, tabId)) return places;
      fresh = true;
    }
  }

  #joinLookup(fresh: boolean): Lookup {
    const kind = fresh ? "fresh" : "remembered";
    const underWay = this.#lookups.get(kind);
    if (underWay !== undefined && !underWay.call.isOver) return underWay;
    const lookup = this.#beginLookup(fresh);
    this.#lookups.set(kind, lookup);
    return lookup;
  }

  #beginLookup(fresh: boolean): Lookup {
    const number = ++this.#begun;
    const at = this.#options.clock.monotonic();
    const call = new SharedCall(async (signal) => {
      const places = await lookUpPlaces({ ...this.#options, base: this.#base, signal, fresh });
      if (number > (this.#remembered?.number ?? 0)) {
        this.#remembered = { number, places, at, doubted: new Set() };
      }
      return places;
    });
    return { number, call };
  }

  /** An instance without a URL listens on the same machine as the server, on a port of its own. */
  #baseIn({ tabs, instances }: Places, tabId: string): string | undefined {
    const address = instances.get(tabs.get(tabId) ?? "");
    if (address === undefined || address === null) return undefined;
    return "url" in address ? address.url : `http://${new URL(this.#base).hostname}:${address.port}`;
  }

  #fail({ tabs, instances }: Places, tabId: string): never {
    const instance = tabs.get(tabId);
    if (instance === undefined) throw unresolved(tabId, "no instance has it", { permanent: true });
    const name = `its instance "${preview(instance)}"`;
    if (!instances.has(instance)) throw unresolved(tabId, `${name} is not in the list`, { permanent: true });
    throw unresolved(tabId, `${name} has no port yet`, { permanent: false });
  }
}

/** Whether the server knows the tab and its instance, reachable or not. */
function isListed({ tabs, instances }: Places, tabId: string): boolean {
  const instance = tabs.get(tabId);
  return instance !== undefined && instances.has(instance);
}

function lookupFailure(tabId: string, error: unknown): Error {
  if (error instanceof HttpError) {
    return new HttpError(error.status, cannotResolve(tabId) + error.message, {
      retryAfterMs: error.retryAfterMs,
    });
  }
  const reason = error instanceof Error ? error.message : String(error);
  return unresolved(tabId, reason, { permanent: error instanceof PermanentError, cause: error });
}
