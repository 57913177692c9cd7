import { isTerminal } from "../../../src/model/task-state.ts";
import type { History } from "../history.ts";
import { replay } from "./replay.ts";

/**
 * A session's tasks start in the order they were accepted: when one starts for the first time, those before it have
 * started, and so many of them have not ended at most that there is room. One in its retry wait keeps its place.
 */
export function sessionOrder({ events, limits }: History): string[] {
  const findings: string[] = [];
  const lines = new Map<string, string[]>();
  const started = new Set<string>();
  for (const { event, before, states } of replay(events)) {
    const { type, taskId, tenantId, sessionKey, seq } = event;
    if (sessionKey === undefined) continue;
    // Two tenants may call theirs the same.
    const name = `${tenantId} ${sessionKey}`;
    const line = lines.get(name) ?? [];
    lines.set(name, line);
    if (type === "task.created") line.push(taskId);
    if (type === "task.retrying" && before !== undefined && isTerminal(before)) {
      // Accepted anew, behind all others.
      line.splice(line.indexOf(taskId), 1);
      line.push(taskId);
      started.delete(taskId);
    }
    if (type !== "task.started" || started.has(taskId)) continue;
    started.add(taskId);
    const ahead = line.slice(0, line.indexOf(taskId)).filter((id) => !isTerminal(states.get(id) ?? "done"));
    const passed = ahead.filter((id) => !started.has(id));
    for (const id of passed)
      findings.push(`session ${sessionKey}: ${taskId} started before ${id} (event ${seq})`);
    const most = limits.sessions[sessionKey] ?? 1;
    if (ahead.length >= most)
      findings.push(
        `session ${sessionKey}: ${taskId} started while ${ahead.join(", ")} had not ended (event ${seq})`,
      );
  }
  return findings;
}
