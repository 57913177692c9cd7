import { preview } from "../model/input/field-checks.ts";
import { SharedCall } from "../outbound/shared-call.ts";
import { baseOf } from "./base-url.ts";
import type { CallOptions } from "./call-out.ts";
import { HttpError, PermanentError } from "./errors.ts";
import type { TabLocations } from "./pinchtab-locations.ts";
import { lookUpTabs } from "./pinchtab-lookup.ts";
import { cannotResolve, type ResolveTabParams, type TabResolver, unresolved } from "./tab-resolver.ts";

/** Tabs seldom move, and a tab that moved is looked up again. The cache only spares a busy server. */
const DEFAULT_CACHE_SEC = 5;

export interface PinchTabResolverOptions extends CallOptions {
  /** The URL of the PinchTab server. */
  readonly url: string;
  /** How long a response is cached; 0: not at all. */
  readonly cacheSec?: number | undefined;
}

/** One lookup at the server, shared by all callers that arrive while it runs. */
interface Lookup {
  /** Counts up: of two lookups, the higher number saw the later state. */
  readonly number: number;
  readonly call: SharedCall<TabLocations>;
}

/** The result of the last lookup. */
interface Remembered {
  readonly number: number;
  readonly locations: TabLocations;
  /** When it began. */
  readonly at: number;
  /** Tabs that were not at the instance that it names. */
  readonly doubted: Set<string>;
}

/** Asks a PinchTab server which of its instances has a tab. Each response lists all tabs, and is cached for a few seconds. */
export class PinchTabResolver implements TabResolver {
  readonly #options: PinchTabResolverOptions;
  readonly #base: string;
  readonly #cacheMs: number;
  /** The running or last lookup of each kind. */
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
    let locations: TabLocations;
    try {
      locations = await this.#findLocations(params);
    } catch (error) {
      params.signal.throwIfAborted();
      throw lookupFailure(params.tabId, error);
    }
    return this.#baseIn(locations, params.tabId) ?? this.#fail(locations, params.tabId);
  }

  /** Another call that did not find the tab there may already have looked it up again. */
  #recall({ tabId, notAt }: ResolveTabParams): string | undefined {
    if (this.#remembered === null) return undefined;
    const { locations, at, doubted } = this.#remembered;
    if (this.#options.clock.monotonic() - at >= this.#cacheMs) return undefined;
    const base = this.#baseIn(locations, tabId);
    if (base !== undefined && base === notAt) doubted.add(tabId);
    return doubted.has(tabId) ? undefined : base;
  }

  /**
   * A running lookup is enough if it finds the tab. If not, it may have read the list before the tab was opened or moved, and
   * only a lookup that began after this call proves that the tab is gone. The server itself caches tabs. So a tab that it does
   * not list, or that was not where it said, counts as gone only after a fresh lookup.
   */
  async #findLocations({ tabId, signal, notAt }: ResolveTabParams): Promise<TabLocations> {
    const begunBefore = this.#begun;
    let fresh = notAt !== undefined;
    for (;;) {
      const lookup = this.#joinLookup(fresh);
      const locations = await lookup.call.wait(signal);
      const base = this.#baseIn(locations, tabId);
      if (base !== undefined && base !== notAt) return locations;
      if (lookup.number <= begunBefore) continue;
      if (fresh || isListed(locations, tabId)) return locations;
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
      const locations = await lookUpTabs({ ...this.#options, base: this.#base, signal, fresh });
      if (number > (this.#remembered?.number ?? 0)) {
        this.#remembered = { number, locations, at, doubted: new Set() };
      }
      return locations;
    });
    return { number, call };
  }

  /** An instance without a URL runs on the same machine as the server, on its own port. */
  #baseIn({ tabs, instances }: TabLocations, tabId: string): string | undefined {
    const address = instances.get(tabs.get(tabId) ?? "");
    if (address === undefined || address === null) return undefined;
    return "url" in address ? address.url : `http://${new URL(this.#base).hostname}:${address.port}`;
  }

  #fail({ tabs, instances }: TabLocations, tabId: string): never {
    const instance = tabs.get(tabId);
    if (instance === undefined) throw unresolved(tabId, "no instance has it", { permanent: true });
    const name = `its instance "${preview(instance)}"`;
    if (!instances.has(instance)) throw unresolved(tabId, `${name} is not in the list`, { permanent: true });
    throw unresolved(tabId, `${name} has no port yet`, { permanent: false });
  }
}

/** Whether the server lists the tab and its instance, reachable or not. */
function isListed({ tabs, instances }: TabLocations, tabId: string): boolean {
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
