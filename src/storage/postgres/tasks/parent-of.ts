/** Something of the task with this id, found by its id alone: with the tenant beside it, the planner takes another index. */
export function parentOf(id: string, tenant: string, what: string): string {
  return `(select case when p.tenant = ${tenant} then ${what} end from task p where p.id = ${id})`;
}
