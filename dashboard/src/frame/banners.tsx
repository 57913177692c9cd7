import { useQuery } from "@tanstack/react-query";
import type { Health } from "../../../src/client/index.ts";
import { hasCode } from "../api/errors.ts";
import { useSession } from "../api/session.tsx";
import { Icon } from "../parts/icon.tsx";

/** How often the health of the server is read while the page is visible. */
const EVERY_MS = 15_000;
/** The same while the server is unreachable, so that its return shows at once. */
const AWAY_EVERY_MS = 2_000;

/** Warnings above every page, such as an unreachable server. */
export function Banners() {
  const { client } = useSession();
  const { data, error } = useQuery({
    queryKey: ["health"],
    queryFn: ({ signal }) => client.health({ signal }),
    refetchInterval: ({ state }) => (state.error === null ? EVERY_MS : AWAY_EVERY_MS),
  });
  const sentences = error !== null && !hasCode(error, "unauthorized") ? [UNREACHABLE] : faultsOf(data);
  return sentences.map((sentence) => (
    <div className="notice" role="status" key={sentence}>
      <Icon name="alert" />
      <span>{sentence}</span>
    </div>
  ));
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
