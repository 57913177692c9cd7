import type { DependencyResult } from "../../model/task.ts";
import type { PostgresDatabase } from "./database.ts";

export async function dependencyResults(
  db: PostgresDatabase,
  { seq }: { seq: number },
): Promise<DependencyResult[]> {
  const rows = await db.read<{ id: string; result: string }>({
    name: "dependency_results",
    text: `select p.id, p.result from dependency d join task p on p.seq = d.parent_seq
            where d.child_seq = $1 and p.resting_state = 'done' order by p.seq`,
    values: [seq],
  });
  return rows.map(({ id, result }) => ({ taskId: id, result: JSON.parse(result) }));
}
