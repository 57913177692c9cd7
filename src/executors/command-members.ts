import { readdirSync, readFileSync } from "node:fs";

/**
 * Whether a process of the group still runs. An ended process stays in its group until its parent reads its exit status, and in
 * many containers no process does that. On Linux `/proc` shows which ones have ended.
 */
export function hasMembers(group: number): boolean {
  if (!exists(group)) return false;
  if (process.platform !== "linux") return true;
  try {
    return readdirSync("/proc").some((entry) => /^\d+$/.test(entry) && isMember(entry, group));
  } catch {
    return true;
  }
}

/** The pid that addresses a whole group in a signal. Windows has no groups: there it is only the leader. */
export function allOf(group: number): number {
  return process.platform === "win32" ? group : -group;
}

function exists(group: number): boolean {
  try {
    return process.kill(allOf(group), 0);
  } catch (error) {
    // A process that this user may not signal still exists.
    return (error as NodeJS.ErrnoException).code === "EPERM";
  }
}

/** The second field of `stat` is a name in parentheses, which may contain any character. The fifth is the group. */
function isMember(process: string, group: number): boolean {
  let stat: string;
  try {
    stat = readFileSync(`/proc/${process}/stat`, "latin1");
  } catch {
    // The process has ended meanwhile.
    return false;
  }
  const [state, _parent, itsGroup] = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
  return Number(itsGroup) === group && state !== "Z" && state !== "X";
}
