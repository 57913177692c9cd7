import { useSyncExternalStore } from "react";
import type { DoctorProgress, DoctorReport } from "../../../src/client/index.ts";
import { useSession } from "../api/session.tsx";
import { Store } from "../live/store.ts";
import { useQuery } from "../queries/use-query.ts";
import { useKept } from "./use-kept.ts";

/** An examination reads every row. So the browser of an admin starts one by itself at most this often. */
const EVERY_MS = 86_400_000;

/** The last examination of this browser. */
interface Last {
  readonly at: number;
  /** The checks that found something. */
  readonly failing: readonly string[];
}

const progress = new Store<DoctorProgress | undefined>(undefined);

/** How far the running examination is. */
export function useDoctorProgress(): DoctorProgress | undefined {
  return useSyncExternalStore(progress.subscribe, progress.get);
}

/** The last examination: its report, if it was made since this page was loaded, and the checks that found something. */
export function useDoctor() {
  const { client, me, may } = useSession();
  const [last, keepLast] = useKept("doctor", toLast);
  const query = useQuery({
    queryKey: ["doctor"],
    queryFn: async ({ signal }): Promise<DoctorReport & Last> => {
      progress.set(undefined);
      const report = await client.doctor({ signal, onProgress: (each) => progress.set(each) });
      const failing = report.checks.filter(({ ok }) => !ok).map(({ name }) => name);
      const kept = { at: Date.now(), failing };
      keepLast(kept);
      return { ...report, ...kept };
    },
    enabled: may("administer") && me.features.includes("doctor") && Date.now() - last.at > EVERY_MS,
    staleTime: Number.POSITIVE_INFINITY,
    gcTime: Number.POSITIVE_INFINITY,
  });
  return { ...query, ...(query.data ?? last) };
}

function toLast(kept: unknown): Last {
  const { at, failing } = (kept ?? {}) as Partial<Last>;
  return { at: typeof at === "number" ? at : 0, failing: Array.isArray(failing) ? failing.map(String) : [] };
}
