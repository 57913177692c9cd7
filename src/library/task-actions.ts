import type { TaskActions } from "../executors/executor.ts";
import type { LocalTenant, TenantAccess } from "../interface/rota.ts";
import type { TaskRecord } from "../model/task-record.ts";
import type { TaskTokens } from "./task-tokens.ts";

export interface TaskActionsOptions {
  readonly tokens: TaskTokens;
  readonly tenant: (id: string, access: TenantAccess) => LocalTenant;
}

/** What the handlers of this process make within their tasks. They may name any agent of the tenant: the program decides. */
export function taskActions({ tokens, tenant }: TaskActionsOptions): (record: TaskRecord) => TaskActions {
  return (record) => {
    const api = async () => tenant(record.tenant, await tokens.provenanceOf(record));
    const { agent } = record;
    return {
      submit: async (input) => (await api()).tasks.submit({ agentId: agent, ...input }),
      schedule: async (input) => (await api()).schedules.create({ agent, ...input }),
      say: async (sessionKey, input) => (await api()).sessions.send(sessionKey, input),
    };
  };
}
