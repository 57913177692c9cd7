import { type ReactNode, useEffect, useRef } from "react";
import type { Health } from "../../../src/client/index.ts";
import { hasCode } from "../api/errors.ts";
import { useSession } from "../api/session.tsx";
import { useLiveState } from "../live/live.tsx";
import { countOf } from "../parts/format.ts";
import { Icon, type IconName } from "../parts/icon.tsx";
import { Link } from "../parts/router.tsx";
import { useDoctor } from "../parts/use-doctor.ts";
import { useQuery } from "../queries/use-query.ts";

/** How often the health of the server is read while the page is visible. */
const EVERY_MS = 15_000;
/** The same while the server is unreachable, so that its return shows at once. */
const AWAY_EVERY_MS = 2_000;

function useHealth() {
  const { client } = useSession();
  return useQuery({
    queryKey: ["health"],
    queryFn: ({ signal }) => client.health({ signal }),
    refetchInterval: ({ state }) => (state.error === null ? EVERY_MS : AWAY_EVERY_MS),
  });
}

/** Whether the server did not respond when it was last asked, although the stream may not have noticed yet. */
export function useIsAway(): boolean {
  const { error } = useHealth();
  return error !== null && !hasCode(error, "unauthorized");
}

/**
 * After a restart another node responds: the frame shows its name and version without a reload. The health is read again as soon
 * as the stream is back.
 */
export function useFreshNode(): void {
  const { refresh } = useSession();
  const { status } = useLiveState();
  const { data, refetch } = useHealth();
  const seen = useRef<string>(undefined);
  const wasLost = useRef(false);
  const startedAt = data?.startedAt;
  useEffect(() => {
    if (status === "lost") wasLost.current = true;
    if (status !== "live" || !wasLost.current) return;
    wasLost.current = false;
    void refetch();
  }, [status, refetch]);
  useEffect(() => {
    const isFirst = seen.current === undefined;
    if (startedAt === undefined || startedAt === seen.current) return;
    seen.current = startedAt;
    // If it fails, the next look at the health tries again.
    if (!isFirst) {
      refresh().catch(() => {
        seen.current = "";
      });
    }
  }, [startedAt, refresh]);
}

/** Warnings above every page, such as an unreachable server. */
export function Banners() {
  const { data } = useHealth();
  const isAway = useIsAway();
  const { isPaused, togglePaused } = useLiveState();
  const { may } = useSession();
  const { failing } = useDoctor();
  const sentences = isAway ? [UNREACHABLE] : faultsOf(data);
  return (
    <>
      {sentences.map((sentence) => (
        <Notice key={sentence} icon="alert">
          <span>{sentence}</span>
        </Notice>
      ))}
      {may("administer") && failing.length > 0 && (
        <Notice icon="alert">
          <span>
            The doctor found something wrong in {countOf(failing.length, "check")}: {failing.join(", ")}.
          </span>
          <Link className="link" href="/doctor">
            See the doctor
          </Link>
        </Notice>
      )}
      {isPaused && (
        <Notice icon="pause">
          <span>Live updates are paused. What you see may be old.</span>
          <button type="button" className="link" onClick={togglePaused}>
            Go on live
          </button>
        </Notice>
      )}
    </>
  );
}

function Notice({ icon, children }: { readonly icon: IconName; readonly children: ReactNode }) {
  return (
    <div className="notice" role="status">
      <Icon name={icon} />
      {children}
    </div>
  );
}

const UNREACHABLE = "The server cannot be reached. What you see may be old.";

function faultsOf(health: Health | undefined): string[] {
  if (health === undefined) return [];
  const { state, storage, storageError, scheduler, config } = health;
  return [
    ...(state === "draining" || state === "drained"
      ? ["This node is stopping: it takes no new work, and what runs comes to its end."]
      : []),
    ...(scheduler === "disabled"
      ? ["The scheduler is disabled: nothing is taken or started until `scheduler.enabled` is true."]
      : []),
    ...(storage === "unavailable"
      ? [`The database cannot be written to${storageError === undefined ? "" : `: ${storageError}`}.`]
      : []),
    ...(config.ok ? [] : [`The configuration on disk is not in force: ${config.error}`]),
  ];
}
