import { readdirSync, readFileSync } from "node:fs";

/**
 * Whether anybody in a group of processes still does something. One that has ended counts as one of the group until
 * somebody asks how it ended, which in many containers nobody does: on Linux the list of processes tells them apart.
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

/** The number by which a signal reaches a whole group. Windows has no groups: there it is the leader alone. */
export function allOf(group: number): number {
  return process.platform === "win32" ? group : -group;
}

function exists(group: number): boolean {
  try {
    return process.kill(allOf(group), 0);
  } catch (error) {
    // Whoever may not be sent anything is there all the same.
    return (error as NodeJS.ErrnoException).code === "EPERM";
  }
}

/** The second field is a name in parentheses, which may have any character in it; the fifth is the group. */
function isMember(process: string, group: number): boolean {
  let stat: string;
  try {
    stat = readFileSync(`/proc/${process}/stat`, "latin1");
  } catch {
    // It has ended meanwhile.
    return false;
  }
  const [state, _parent, itsGroup] = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
  return Number(itsGroup) === group && state !== "Z" && state !== "X";
}
