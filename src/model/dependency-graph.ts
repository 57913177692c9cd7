import { RotaError } from "./errors.ts";
import { codeList, preview } from "./input/field-checks.ts";
import { isTaskId } from "./task-id.ts";
import { nearestName } from "./text/nearest-name.ts";

/** A submitted task, perhaps with others. */
export interface GraphTask {
  readonly id: string;
  /** Its name in `dependsOn` of the others; undefined: they cannot depend on it. */
  readonly key: string | undefined;
  /** Ids of stored tasks, or keys of others in the same request. */
  readonly dependsOn: readonly string[];
}

export interface Graph {
  /** For each task, the ids of its dependencies. */
  readonly dependsOn: readonly (readonly string[])[];
  /** The indexes of the tasks, each after its dependencies, otherwise in the given order. */
  readonly order: readonly number[];
}

/**
 * Resolves the dependencies between tasks. Throws `unknown_key` for a name that is neither the id of a task nor a key,
 * `invalid_field` for a duplicate key, and `dependency_cycle` with the tasks of the cycle.
 */
export function resolveDependencies(tasks: readonly GraphTask[]): Graph {
  const byKey = indexesOfKeys(tasks);
  const parents = tasks.map((task, index) =>
    task.dependsOn.map((name) => findParent(name, index, tasks, byKey)),
  );
  return {
    dependsOn: parents.map((each) => [...new Set(each.map((parent) => parent.id))]),
    order: inOrder(tasks, parents),
  };
}

interface Parent {
  readonly id: string;
  /** Null: it is not part of this request. */
  readonly index: number | null;
}

function indexesOfKeys(tasks: readonly GraphTask[]): Map<string, number> {
  const byKey = new Map<string, number>();
  for (const [index, { key }] of tasks.entries()) {
    if (key === undefined) continue;
    const first = byKey.get(key);
    if (first !== undefined) {
      throw new RotaError(
        "invalid_field",
        `tasks[${index}]: \`key\` "${preview(key)}" is also that of tasks[${first}]: give each its own`,
        { details: { field: "key", index } },
      );
    }
    byKey.set(key, index);
  }
  return byKey;
}

function findParent(
  name: string,
  index: number,
  tasks: readonly GraphTask[],
  byKey: ReadonlyMap<string, number>,
): Parent {
  const parent = byKey.get(name);
  if (parent !== undefined) return { id: tasks[parent]?.id ?? "", index: parent };
  if (isTaskId(name)) return { id: name, index: null };
  const nearest = nearestName(name, [...byKey.keys()]);
  const hint =
    nearest !== undefined
      ? `did you mean "${preview(nearest)}"?`
      : byKey.size > 0
        ? `keys are ${codeList([...byKey.keys()].slice(0, 10))}`
        : "write the id of a task, like tsk_…";
  throw new RotaError(
    "unknown_key",
    `${tasks.length === 1 ? "" : `tasks[${index}]: `}\`dependsOn\` names "${preview(name)}", which is neither the id of a task nor a key: ${hint}`,
    { details: { field: "dependsOn", key: name, index } },
  );
}

/** Depth-first search with its own stack: a chain of ten thousand tasks would overflow the call stack. */
function inOrder(tasks: readonly GraphTask[], parents: readonly (readonly Parent[])[]): number[] {
  const order: number[] = [];
  const seen: ("entered" | "left" | undefined)[] = Array(tasks.length).fill(undefined);
  for (const start of tasks.keys()) {
    if (seen[start] !== undefined) continue;
    const path: { index: number; next: number }[] = [{ index: start, next: 0 }];
    seen[start] = "entered";
    for (let top = path.at(-1); top !== undefined; top = path.at(-1)) {
      const parent = parents[top.index]?.[top.next];
      top.next += 1;
      if (parent === undefined) {
        seen[top.index] = "left";
        order.push(top.index);
        path.pop();
      } else if (parent.index !== null && seen[parent.index] === "entered") {
        throw cycle(tasks, [...path.map(({ index }) => index), parent.index]);
      } else if (parent.index !== null && seen[parent.index] === undefined) {
        seen[parent.index] = "entered";
        path.push({ index: parent.index, next: 0 });
      }
    }
  }
  return order;
}

/** The tasks of the cycle, each of which depends on the next. */
function cycle(tasks: readonly GraphTask[], way: readonly number[]): RotaError {
  const around = way.slice(way.indexOf(way.at(-1) as number));
  const path = around.map((index) => tasks[index]?.key ?? `tasks[${index}]`);
  return new RotaError(
    "dependency_cycle",
    `these tasks depend on each other in a circle, so that none could ever start: ${path.map(preview).join(" → ")}`,
    { details: { path } },
  );
}
