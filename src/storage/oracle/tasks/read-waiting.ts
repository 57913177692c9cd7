import { agentKey } from "../../../model/agent.ts";
import { isAloneKind } from "../../alone-queue.ts";
import { WAITING_QUEUES_MAX, type WaitingQueue, type WaitingTasks } from "../../storage.ts";
import { isReady, isSameAgent, type OracleState, type OracleTask } from "../state.ts";
import { isExecutable, laneShareOf } from "./read-situation.ts";
import { inflightOfTenant } from "./room.ts";

export function readWaiting(state: OracleState, { tenant }: { tenant: string }): WaitingTasks {
  const waiting = state.tasks.filter((task) => task.tenant === tenant && task.held === null);
  const inState = (name: OracleTask["state"]) => waiting.filter((task) => task.state === name);
  const ready = waiting.filter(isReady);
  const queues = queuesOf(state, ready);
  const listed = queues.slice(0, WAITING_QUEUES_MAX);
  const record = state.tenants.get(tenant);
  return {
    forTasks: inState("waiting_dependency").length,
    delayed: inState("delayed").length,
    heldBack: waiting.filter(({ parked }) => parked !== null).length,
    queues: listed,
    readyElsewhere: ready.length - listed.reduce((sum, queue) => sum + queue.ready, 0),
    tenant: {
      disabled: record?.disabled ?? false,
      inflight: inflightOfTenant(state, tenant),
      max: record?.limits.maxInflight ?? null,
    },
  };
}

function queuesOf(state: OracleState, ready: readonly OracleTask[]): WaitingQueue[] {
  const groups = Map.groupBy(ready, (task) =>
    JSON.stringify([task.lane, task.agent, isExecutable(state, task), isAloneKind(task.queueKind)]),
  );
  const queues = [...groups.values()].map((tasks): WaitingQueue => {
    const [first] = tasks as [OracleTask];
    const running = state.tasks.filter(({ held }) => held !== null);
    const inLane = running.filter(({ lane }) => lane === first.lane);
    const lane = state.lanes.get(first.lane);
    return {
      lane: first.lane,
      agent: first.agent,
      ready: tasks.length,
      executable: isExecutable(state, first),
      alone: isAloneKind(first.queueKind),
      limits: {
        lane: { inflight: inLane.length, total: lane?.total ?? null },
        laneShare: lane === undefined ? null : laneShareOf(state, lane, first.tenant),
        inLane: {
          inflight: inLane.filter((task) => isSameAgent(task, first)).length,
          max: lane?.perAgent ?? null,
        },
        agent: {
          inflight: running.filter((task) => isSameAgent(task, first)).length,
          max: state.agentLimits.get(agentKey(first)) ?? null,
        },
      },
    };
  });
  return queues.sort(
    (a, b) =>
      b.ready - a.ready ||
      compare(a.lane, b.lane) ||
      compare(a.agent, b.agent) ||
      Number(a.executable) - Number(b.executable) ||
      Number(a.alone) - Number(b.alone),
  );
}

function compare(a: string, b: string): number {
  return a < b ? -1 : Number(a > b);
}
