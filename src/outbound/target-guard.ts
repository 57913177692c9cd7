import type { Dispatcher } from "undici";
import {
  ALLOWED_TARGET_FORMS,
  type AllowedTarget,
  parseAddress,
  parseAllowedTarget,
  plainHost,
} from "../model/allowed-target.ts";
import { callbackUrlFault } from "../model/callback-url.ts";
import type { Clock } from "../model/clock.ts";
import { invalidField } from "../model/field-checks.ts";
import { createGuardedAgent } from "./guarded-agent.ts";
import { HurriedLookup, type Lookup, systemLookup } from "./name-lookup.ts";
import { notPublic } from "./public-address.ts";

export interface TargetGuardOptions {
  /** Hosts, addresses and networks that may be called although they are not public; see `AllowedTarget`. */
  readonly allow: readonly string[];
  readonly clock: Clock;
  /** For tests: how names are resolved. */
  readonly lookup?: Lookup;
}

/**
 * Decides which URLs Rota calls on behalf of its users: those of public hosts, and those that the configuration opens.
 * A name is looked at when it is handed in, so that a user hears of a mistake at once; what counts is the look at the
 * address that is connected to, since the same name may lead elsewhere by then.
 *
 * @example
 * const guard = new TargetGuard({ allow: ["hooks.internal", "10.0.0.0/8"], clock });
 * await guard.check(url, "callbackUrl");
 * await fetchAnswer(url, { ...request, guard });
 */
export class TargetGuard {
  readonly #allowed: readonly AllowedTarget[];
  readonly #lookup: Lookup;
  readonly #names: HurriedLookup;
  #agent: ReturnType<typeof createGuardedAgent> | null = null;

  constructor({ allow, clock, lookup = systemLookup }: TargetGuardOptions) {
    this.#allowed = allow.map(readAllowed);
    this.#lookup = lookup;
    this.#names = new HurriedLookup({ lookup, clock });
  }

  /** What forbids to call a URL, as far as it alone tells, as the rest of "`callbackUrl` must …"; null: nothing. */
  urlFault(url: string): string | null {
    return callbackUrlFault(url) ?? this.#hostFault(hostOf(url));
  }

  /**
   * Throws `invalid_field` for a URL that must not be called. A name that cannot be resolved now passes: it may well
   * be right by the time it is called, and is looked at again then.
   */
  async check(url: string, field: string): Promise<void> {
    const fault = this.urlFault(url) ?? (await this.#nameFault(hostOf(url)));
    if (fault !== null) throw invalidField(field, `\`${field}\` must ${fault}`);
  }

  /** Connects to nothing that must not be called. */
  dispatcher(): Promise<Dispatcher> {
    this.#agent ??= createGuardedAgent({
      hostFault: (host) => this.#hostFault(host),
      addressFault: (host, address) => this.#addressFault(host, address),
      lookup: this.#lookup,
    });
    return this.#agent;
  }

  /** Drops all its connections. One that is merely no longer used lets go of them by itself, after a while. */
  async close(): Promise<void> {
    await (await this.#agent)?.destroy();
  }

  #hostFault(host: string): string | null {
    if (this.#isOpen(host)) return null;
    const isAddress = parseAddress(host) !== null;
    const kind = isAddress ? notPublic(host) : isLocalName(host) ? "this machine" : null;
    if (kind === null || (isAddress && this.#isAllowedAddress(host))) return null;
    return `not lead to ${host}, ${kind}: ${remedy(host)}`;
  }

  async #nameFault(host: string): Promise<string | null> {
    if (this.#isOpen(host) || parseAddress(host) !== null) return null;
    const addresses = (await this.#names.addresses(host)) ?? [];
    return addresses.map(({ address }) => this.#addressFault(host, address)).find(isFault) ?? null;
  }

  /** What forbids to connect to an address of a host. It does not tell the address, which may be nobody's business. */
  #addressFault(host: string, address: string): string | null {
    if (this.#isOpen(host) || this.#isAllowedAddress(address) || notPublic(address) === null) return null;
    return `not lead to ${host}, which has an address that is not public: ${remedy(host)}`;
  }

  /** Whether a host is allowed by its name, and so may have any address. */
  #isOpen(host: string): boolean {
    return this.#allowed.some(
      (target) =>
        (target.kind === "host" && target.name === host) ||
        (target.kind === "below" && host.endsWith(`.${target.name}`)),
    );
  }

  #isAllowedAddress(address: string): boolean {
    const parsed = parseAddress(address);
    return this.#allowed.some((target) => {
      if (target.kind !== "network" || parsed === null) return false;
      const [network, prefixLength] = target.network;
      return network.kind() === parsed.kind() && parsed.match(network, prefixLength);
    });
  }
}

function readAllowed(entry: string, index: number): AllowedTarget {
  const target = parseAllowedTarget(entry);
  if (target !== null) return target;
  throw invalidField("webhooks.allow", `\`webhooks.allow.${index}\` must be ${ALLOWED_TARGET_FORMS}`);
}

function hostOf(url: string): string {
  return plainHost(new URL(url).hostname);
}

/** Names that mean this machine wherever they are resolved. */
function isLocalName(host: string): boolean {
  return host === "localhost" || host.endsWith(".localhost");
}

function remedy(host: string): string {
  return `name a public host, or add "${host}" to \`webhooks.allow\` of the configuration`;
}

function isFault(fault: string | null): fault is string {
  return fault !== null;
}
