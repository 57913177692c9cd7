/** A value of the task with this id, found by the id alone: given the tenant too, the planner would use another index. */
export function parentOf(id: string, tenant: string, what: string): string {
  return `(select case when p.tenant = ${tenant} then ${what} end from task p where p.id = ${id})`;
}
