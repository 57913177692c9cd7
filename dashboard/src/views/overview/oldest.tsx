import { useState } from "react";
import { useSession } from "../../api/session.tsx";
import { Icon } from "../../parts/icon.tsx";
import { Read } from "../../parts/read.tsx";
import { Link } from "../../parts/router.tsx";
import { titleOf } from "../../parts/task-text.ts";
import { Span } from "../../parts/time.tsx";
import { useQuery } from "../../queries/use-query.ts";
import { headline } from "../task/reason-text.tsx";

/** The task that has waited longest, and why. Read when the user asks for it: the overview makes few requests. */
export function Oldest() {
  const { client } = useSession();
  const [isOpen, setOpen] = useState(false);
  const query = useQuery({
    queryKey: ["oldest"],
    queryFn: async ({ signal }) => {
      const { tasks } = await client.tasks.list({ state: "queued", order: "oldest", limit: 1 }, { signal });
      const [task] = tasks;
      return { task, why: task && (await client.tasks.explain(task.taskId, { signal })) };
    },
    enabled: isOpen,
    meta: { live: ({ type }) => type !== "task.progress" },
  });
  return (
    <details className="more" onToggle={({ currentTarget }) => setOpen(currentTarget.open)}>
      <summary>
        <Icon name="right" size={12} />
        Why the oldest waits
      </summary>
      {isOpen && (
        <Read query={query} what="The oldest task">
          {({ task, why }) =>
            task === undefined ? (
              <p className="sub">All that wait are not due yet, or wait for other tasks.</p>
            ) : (
              <p>
                <Link className="link" href={`/tasks/${task.taskId}`}>
                  {titleOf(task)}
                </Link>
                , created <Span from={task.createdAt} /> ago: {headline(why?.reasons ?? [], task)}
              </p>
            )
          }
        </Read>
      )}
    </details>
  );
}
