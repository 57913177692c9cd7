import type { Dispatcher } from "undici";
import { callbackUrlFault } from "../model/callback-url.ts";
import type { Clock } from "../model/clock.ts";
import { invalidField } from "../model/input/field-checks.ts";
import {
  OUTBOUND_TARGET_FORMS,
  type OutboundTarget,
  parseAddress,
  parseOutboundTarget,
  plainHost,
} from "../model/outbound-target.ts";
import { createGuardedAgent, NOT_RESOLVED } from "./guarded-agent.ts";
import { HurriedLookup, type Lookup, systemLookup } from "./name-lookup.ts";
import { notPublic } from "./public-address.ts";

/** The lists `outbound.allow` and `outbound.deny`; see `OutboundTarget`. */
export interface OutboundTargets {
  /** May be called, although private. */
  readonly allow: readonly string[];
  /** Must not be called. Wins over `allow`. */
  readonly deny?: readonly string[];
}

export interface TargetGuardOptions extends OutboundTargets {
  readonly clock: Clock;
  /** For tests: how names are resolved. */
  readonly lookup?: Lookup;
}

/**
 * Decides which URLs Rota calls on behalf of its users: those of public hosts, and those that the configuration allows.
 * `check` resolves a name when it is submitted, so that the caller gets an error at once. The check that counts is the one of
 * the address at the time of the connection, since the name may resolve to another address by then.
 *
 * @example
 * const guard = new TargetGuard({ allow: ["hooks.internal", "10.0.0.0/8"], clock });
 * await guard.check(url, "callbackUrl");
 * await fetchAnswer(url, { ...request, guard });
 */
export class TargetGuard {
  readonly #allowed: readonly OutboundTarget[];
  readonly #denied: readonly OutboundTarget[];
  readonly #lookup: Lookup;
  readonly #names: HurriedLookup;
  #agent: ReturnType<typeof createGuardedAgent> | null = null;

  constructor({ allow, deny = [], clock, lookup = systemLookup }: TargetGuardOptions) {
    this.#allowed = allow.map((entry, index) => readTarget(entry, `outbound.allow.${index}`));
    this.#denied = deny.map((entry, index) => readTarget(entry, `outbound.deny.${index}`));
    this.#lookup = lookup;
    this.#names = new HurriedLookup({ lookup, clock });
  }

  /** Why a URL must not be called, without a name lookup, as the rest of "`callbackUrl` must …"; null: it may be. */
  urlFault(url: string): string | null {
    return callbackUrlFault(url) ?? this.#hostFault(hostOf(url));
  }

  /**
   * Throws `invalid_field` for a URL that must not be called. A name that cannot be resolved now passes: it may resolve by the
   * time it is called, and is checked again then.
   */
  async check(url: string, field: string): Promise<void> {
    const fault = this.urlFault(url) ?? (await this.#nameFault(hostOf(url)));
    if (fault !== null) throw invalidField(field, `\`${field}\` must ${fault}`);
  }

  /** A dispatcher for undici that refuses to connect to hosts and addresses that must not be called. */
  dispatcher(): Promise<Dispatcher> {
    this.#agent ??= createGuardedAgent({
      hostFault: (host) => this.#hostFault(host),
      addressFault: (host, address) => this.#addressFault(host, address),
      lookup: this.#lookup,
    });
    return this.#agent;
  }

  /** Drops all its connections. Without a call, idle ones close by themselves after a while. */
  async close(): Promise<void> {
    await (await this.#agent)?.destroy();
  }

  #hostFault(host: string): string | null {
    if (names(this.#denied, host) || holds(this.#denied, host)) return denied(host);
    if (names(this.#allowed, host) || holds(this.#allowed, host)) return null;
    const kind = parseAddress(host) !== null ? notPublic(host) : privateName(host);
    return kind === null ? null : `not lead to ${host}, ${kind}: ${remedy(host)}`;
  }

  async #nameFault(host: string): Promise<string | null> {
    const isOpen = names(this.#allowed, host) && !this.#denied.some(({ kind }) => kind === "network");
    if (isOpen || parseAddress(host) !== null) return null;
    const addresses = (await this.#names.addresses(host)) ?? [];
    return addresses.map(({ address }) => this.#addressFault(host, address)).find(isFault) ?? null;
  }

  /** Why an address of a host must not be called. The message contains no address, so that users cannot probe names. */
  #addressFault(host: string, address: string): string | null {
    if (holds(this.#denied, address)) return denied(host);
    if (names(this.#allowed, host) || holds(this.#allowed, address) || notPublic(address) === null)
      return null;
    return `not lead to ${host}, which ${NOT_RESOLVED}: ${remedy(host)}`;
  }
}

/** Whether the targets name this host. A named host matches with any address. */
function names(targets: readonly OutboundTarget[], host: string): boolean {
  return targets.some(
    (target) =>
      (target.kind === "host" && target.name === host) ||
      (target.kind === "below" && host.endsWith(`.${target.name}`)),
  );
}

/** Whether an address lies in a network of the targets. */
function holds(targets: readonly OutboundTarget[], address: string): boolean {
  const parsed = parseAddress(address);
  return targets.some((target) => {
    if (target.kind !== "network" || parsed === null) return false;
    const [network, prefixLength] = target.network;
    return network.kind() === parsed.kind() && parsed.match(network, prefixLength);
  });
}

function readTarget(entry: string, field: string): OutboundTarget {
  const target = parseOutboundTarget(entry);
  if (target !== null) return target;
  throw invalidField(field, `\`${field}\` must be ${OUTBOUND_TARGET_FORMS}`);
}

function hostOf(url: string): string {
  return plainHost(new URL(url).hostname);
}

/** Endings that only names of private networks have. */
const PRIVATE_ENDINGS = ["internal", "local", "lan", "home", "corp", "intranet", "private", "home.arpa"];

/** Describes a name that can only be one of a private network; null for any other. */
function privateName(host: string): string | null {
  if (host === "localhost" || host.endsWith(".localhost")) return "this machine";
  if (host.includes(".") && !PRIVATE_ENDINGS.some((ending) => host.endsWith(`.${ending}`))) return null;
  return "a name of a private network";
}

function denied(host: string): string {
  return `not lead to ${host}, which \`outbound.deny\` of the configuration refuses: name another host`;
}

function remedy(host: string): string {
  return `name a public host, or add "${host}" to \`outbound.allow\` of the configuration`;
}

function isFault(fault: string | null): fault is string {
  return fault !== null;
}
