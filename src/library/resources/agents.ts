import { masked } from "../../config/masked.ts";
import type { AgentInfo, Agents } from "../../interface/agents.ts";
import type { AgentOptions } from "../../interface/options.ts";
import { toAgentId } from "../../model/agent.ts";
import type { Clock } from "../../model/clock.ts";
import { RotaError } from "../../model/errors.ts";
import { AGENT, AGENT_CHANGES } from "../../model/input/agent-schema.ts";
import type { Fields } from "../../model/input/field-checks.ts";
import { readChanges, readFields } from "../../model/input/read-fields.ts";
import type { Scope } from "../../model/scope.ts";
import type { TargetGuard } from "../../outbound/target-guard.ts";
import type { AgentRecord, Storage } from "../../storage/storage.ts";
import { namesOther } from "../agent-scope.ts";
import type { OneAtATime } from "../one-at-a-time.ts";
import type { AgentCatalogue } from "../registries/agent-catalogue.ts";
import { sealHeaders } from "../registries/agent-secrets.ts";
import type { AgentTable, KnownAgent } from "../registries/agent-table.ts";
import type { SecretBox } from "../registries/secret-box.ts";
import { agentDefinition, asFields } from "./agent-input.ts";
import { agentCursor, parseAgentPage } from "./agent-page.ts";

export interface AgentsOptions {
  readonly scope: Scope;
  readonly storage: Storage;
  readonly table: AgentTable;
  readonly catalogue: AgentCatalogue;
  readonly guard: () => TargetGuard;
  /** Encrypts the headers of agents before they are stored. */
  readonly box: SecretBox;
  /** Serializes changes of agents. */
  readonly turns: OneAtATime;
  readonly clock: Clock;
  /** How many agents the tenant may store. */
  readonly maxAgents: () => number;
  /** Throws `not_found` once the tenant is deleted. */
  readonly checkNotGone: () => void;
}

/** The agents API of one tenant, or of one agent in it. */
export function createAgents(options: AgentsOptions): Agents {
  const { scope, storage, table, catalogue, guard, box, turns, clock } = options;
  const { maxAgents, checkNotGone } = options;
  const { tenant } = scope;

  async function find(given: string): Promise<KnownAgent & { readonly id: string }> {
    await catalogue.read();
    const id = toAgentId(given);
    const known = id === null || namesOther(scope, id) ? undefined : table.find({ tenant, agent: id });
    if (id === null || known === undefined) throw notFound();
    return { ...known, id };
  }

  async function toRecord(id: string, before: AgentOptions, given: Fields): Promise<AgentRecord> {
    const definition = await agentDefinition(before, given, { guard: guard(), clock });
    return {
      tenant,
      agent: id,
      maxInflight: (definition["maxInflight"] as number | undefined) ?? null,
      definition: sealHeaders(definition, { tenant, agent: id }, box),
    };
  }

  function checkRoom(): void {
    const max = maxAgents();
    const { size } = table.storedOf(tenant);
    if (size >= max) throw full(size, max);
  }

  /** Ignores a failed read: the agent is stored, and later reads find it. */
  async function stored({ agent, definition }: AgentRecord): Promise<AgentInfo> {
    await catalogue.read().catch(() => {});
    return toInfo(agent, definition, "stored");
  }

  return {
    async list(page = {}) {
      const { limit, after } = parseAgentPage({ ...page });
      await catalogue.read();
      const ids = table
        .ids(tenant)
        .filter((id) => !namesOther(scope, id) && (after === undefined || id > after));
      const agents = ids
        .slice(0, limit)
        .map((id) => shownAgent(id, table.find({ tenant, agent: id }) as KnownAgent));
      const nextCursor = ids.length > limit ? agentCursor(agents.at(-1)?.id ?? "") : null;
      return { agents, count: agents.length, nextCursor };
    },

    async get(id) {
      const known = await find(id);
      return shownAgent(known.id, known);
    },

    async create(input) {
      const { id, ...given } = readFields(AGENT, asFields(input));
      return turns.run(async () => {
        await catalogue.read();
        const known = table.find({ tenant, agent: id });
        if (known !== undefined) throw alreadyThere(id, known.source);
        checkRoom();
        const record = await toRecord(id, {}, given);
        checkNotGone();
        if (!(await storage.agents.create(record))) throw alreadyThere(id, "stored");
        return stored(record);
      });
    },

    async update(written, changes) {
      const given = readChanges(AGENT_CHANGES, asFields(changes));
      return turns.run(async () => {
        const { id, agent, source } = changeable(await find(written));
        if (agent.unusable !== undefined && given.executor === undefined)
          throw new RotaError("conflict", agent.unusable);
        const record = await toRecord(id, agent.options, given);
        checkNotGone();
        // If two nodes describe `index` for the first time at once, the second one has to update it.
        const created = source === "built-in" && (await storage.agents.create(record));
        if (!created && !(await storage.agents.update(record))) throw notFound();
        return stored(record);
      });
    },

    async delete(written) {
      return turns.run(async () => {
        const { id, source } = changeable(await find(written));
        if (source === "built-in") {
          throw new RotaError("conflict", `the agent "${id}" is built in and cannot be deleted`);
        }
        if (!(await storage.agents.delete({ tenant, agent: id }))) throw notFound();
        await catalogue.read().catch(() => {});
        return { deleted: true };
      });
    },
  };
}

function shownAgent(id: string, { agent, source }: KnownAgent): AgentInfo {
  return toInfo(id, agent.options, source);
}

/** With secrets masked, and without a handler of the program, which cannot be shown. */
function toInfo(id: string, options: AgentOptions, source: AgentInfo["source"]): AgentInfo {
  const { executor, lane, maxInflight, maxQueued, contextWindow, require, writs } = options;
  const { delegates, taskToken, bounds } = options;
  return {
    id,
    ...(executor === undefined || typeof executor === "function" ? {} : { executor: masked(executor) }),
    ...(lane === undefined ? {} : { lane }),
    ...(maxInflight === undefined ? {} : { maxInflight }),
    ...(maxQueued === undefined ? {} : { maxQueued }),
    ...(contextWindow === undefined ? {} : { contextWindow }),
    ...(require === undefined ? {} : { require }),
    ...(writs === undefined ? {} : { writs }),
    ...(delegates === undefined ? {} : { delegates }),
    ...(taskToken === undefined ? {} : { taskToken }),
    ...(bounds === undefined ? {} : { bounds }),
    source,
  };
}

function changeable<Known extends KnownAgent & { readonly id: string }>(known: Known): Known {
  if (known.source !== "config") return known;
  throw new RotaError("conflict", `the agent "${known.id}" is set by the configuration: change it there`);
}

function alreadyThere(id: string, source: AgentInfo["source"]): RotaError {
  const where =
    source === "config"
      ? "in the configuration: change it there"
      : `stored already: change it with PATCH /v1/agents/${encodeURIComponent(id)}, or "rota agents update ${id}"`;
  return new RotaError("conflict", `the agent "${id}" is ${where}`);
}

function full(agents: number, maxAgents: number): RotaError {
  return new RotaError(
    "conflict",
    `the tenant stores ${agents} agents and may store ${maxAgents}: delete one first`,
    { details: { agents, maxAgents } },
  );
}

function notFound(): RotaError {
  return new RotaError("not_found", "agent not found");
}
