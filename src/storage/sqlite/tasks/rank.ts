import { FRONT_RANK, PRIORITY_CRITICAL } from "../../../model/priority.ts";

/** `rankOf` for a row of `task`, in SQL; `@agingMs` is that of its lane. */
export const RANK = `
  case when priority <= ${PRIORITY_CRITICAL} then priority
       when @agingMs = 0 then ${FRONT_RANK} + priority
       else max(created_at, coalesce(run_at, created_at)) + priority * @agingMs end`;
