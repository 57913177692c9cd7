import type { DependencyResultsParams, StoredDependency } from "../../storage.ts";
import type { PostgresDatabase } from "../connection/database.ts";

export async function dependencyResults(
  db: PostgresDatabase,
  { seq, ids, bytesMax }: DependencyResultsParams,
): Promise<StoredDependency[]> {
  const rows = await db.read<{ id: string; bytes: number; result: string | null }>({
    name: "dependency_results",
    // PostgreSQL knows the length of a text without reading the part that is stored out of line.
    text: `select z.id, z.bytes, case when z.total <= $3 then p.result end as result
             from (select p.seq, p.id, octet_length(p.result) as bytes, i.ordinal,
                          sum(octet_length(p.result)) over (order by i.ordinal) as total
                     from dependency d join task p on p.seq = d.parent_seq
                     join unnest($2::text[]) with ordinality i(id, ordinal) on i.id = p.id
                    where d.child_seq = $1 and p.resting_state = 'done') z
             join task p on p.seq = z.seq
            order by z.ordinal`,
    values: [seq, ids, bytesMax],
  });
  return rows.map(({ id, bytes, result }) => ({ taskId: id, resultBytes: bytes, result }));
}
