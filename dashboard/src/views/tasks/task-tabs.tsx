import { useSession } from "../../api/session.tsx";
import { formatCount } from "../../parts/format.ts";
import { Link, useSearch } from "../../parts/router.tsx";
import { isEnded } from "../../parts/task-text.ts";
import { useQuery } from "../../queries/use-query.ts";
import { SavedViews, useSavedViews } from "./saved-views.tsx";
import { TASK_TABS } from "./task-filters.ts";

/** The most used states, with their counts. */
export function TaskTabs() {
  const { client, may } = useSession();
  const saved = useSavedViews();
  const params = new URLSearchParams(useSearch());
  const { data } = useQuery({
    queryKey: ["task-counts"],
    queryFn: ({ signal }) => client.tasks.counts({ signal }),
    enabled: may("read"),
    meta: { live: () => true },
  });
  const current = params.get("state") ?? "";
  // The counts include all tasks. Beside another filter they would contradict the list.
  const isByEnd = params.get("order") === "completed";
  const isWhole = [...params.keys()].every(
    (name) => ["state", "sort", "group"].includes(name) || (name === "order" && !isByEnd),
  );
  return (
    <nav className="tabs" aria-label="States">
      {TASK_TABS.map(({ label, states }) => {
        const state = states.join(",");
        const count = states.reduce((sum, each) => sum + (data?.counts[each] ?? 0), 0);
        const others = new URLSearchParams(params);
        if (state === "") others.delete("state");
        else others.set("state", state);
        // Tasks that have not ended have no position in that order.
        if (isByEnd && !states.every(isEnded)) others.delete("order");
        const search = others.toString();
        return (
          <Link
            key={label}
            href={search === "" ? "/tasks" : `/tasks?${search}`}
            aria-current={current === state && !saved.isCurrent ? "page" : undefined}
          >
            {label}
            {data !== undefined && isWhole && (
              <span className="n">{formatCount(state === "" ? data.total : count)}</span>
            )}
          </Link>
        );
      })}
      <SavedViews {...saved} />
    </nav>
  );
}
