import type { RunAnswer } from "../../../../src/client/index.ts";
import { sentenceOf } from "../../api/errors.ts";
import { useSession } from "../../api/session.tsx";
import { useToast } from "../../parts/toast.tsx";
import { useQueryClient } from "../../queries/query-context.ts";
import { useMutation } from "../../queries/use-mutation.ts";

const NOT_RUN: Readonly<Record<NonNullable<RunAnswer["reason"]>, string>> = {
  "not-due": "It is not due",
  "already-running": "A run is still active, and this schedule runs one at a time",
  too_many_waiting: "Too many of its runs are waiting",
};

type ScheduleAction = "pause" | "resume" | "run" | "delete";

/** The actions on a schedule. Each shows a notice when it is done. */
export function useScheduleActions(id: number, { onDeleted }: { readonly onDeleted: () => void }) {
  const { client } = useSession();
  const toast = useToast();
  const refresh = useRefresh();
  return useMutation({
    mutationFn: async (action: ScheduleAction): Promise<string> => {
      switch (action) {
        case "pause":
          await client.schedules.update(id, { status: "paused" });
          return "Paused";
        case "resume":
          await client.schedules.update(id, { status: "active" });
          return "Resumed";
        case "run": {
          const { ran, reason } = await client.schedules.run(id);
          return ran || reason === undefined ? "A run has begun" : NOT_RUN[reason];
        }
        case "delete":
          await client.schedules.delete(id);
          return "Deleted";
      }
    },
    onSuccess: (said, action) => {
      toast(said);
      if (action === "delete") onDeleted();
    },
    onError: (error) => toast(sentenceOf(error)),
    onSettled: (action) => refresh(action === "delete" ? undefined : id),
  });
}

/** Refetches the lists of schedules, and the changed schedule. */
export function useRefresh(): (id: number | undefined) => void {
  const queries = useQueryClient();
  return (id) => {
    void queries.invalidateQueries({ queryKey: ["schedules"] });
    if (id === undefined) return;
    void queries.invalidateQueries({ queryKey: ["schedule", id] });
    void queries.invalidateQueries({ queryKey: ["runs", id] });
  };
}
