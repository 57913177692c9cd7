import { hasCode } from "../../api/errors.ts";
import { useSession } from "../../api/session.tsx";
import { Button } from "../../parts/button.tsx";
import { useAction } from "../../parts/use-action.ts";
import { useQueryClient } from "../../queries/query-context.ts";
import { useQuery } from "../../queries/use-query.ts";
import { removeSample, SAMPLE_AGENT } from "./sample.ts";

/** Whether the sample is there and has not been removed. `enabled`: there was one. */
export function useHasSample(enabled: boolean): boolean {
  const { client, may } = useSession();
  const { data = false } = useQuery({
    queryKey: ["agents", SAMPLE_AGENT],
    queryFn: async ({ signal }) => {
      try {
        await client.agents.get(SAMPLE_AGENT, { signal });
        return true;
      } catch (error) {
        if (hasCode(error, "not_found")) return false;
        throw error;
      }
    },
    enabled: enabled && may("operate"),
  });
  return data;
}

/** Says that there is a sample, with a button that removes it. */
export function SampleNotice() {
  const { client, me } = useSession();
  const queries = useQueryClient();
  const { mutate, isPending } = useAction(() => removeSample(client, me.features.includes("schedules")), {
    said: () => "The sample is removed",
    onDone: () => {
      for (const key of ["stats", "task-counts", "schedules"]) queries.invalidateQueries({ queryKey: [key] });
    },
    changes: ["agents"],
  });
  return (
    <p className="sample-note">
      <span>
        All tasks of the agent <code>{SAMPLE_AGENT}</code>, its session and its schedule are a sample.
      </span>
      <Button disabled={isPending} onClick={() => mutate(undefined)}>
        {isPending ? "Removing…" : "Remove the sample"}
      </Button>
    </p>
  );
}
