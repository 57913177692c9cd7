import { createContext, type ReactNode, useContext, useEffect, useState, useSyncExternalStore } from "react";
import { RotaClient, type RotaEvent } from "../../../src/client/index.ts";
import { hasCode } from "../api/errors.ts";
import { type Session, useSession } from "../api/session.tsx";
import { QueryClient } from "../queries/query-client.ts";
import { QueryContext } from "../queries/query-context.ts";
import { type Channel, type FeedStatus, openChannel } from "./channel.ts";
import { HeartbeatLeadership, LockLeadership } from "./leadership.ts";
import { LiveFeed, type LiveFeedOptions } from "./live-feed.ts";
import { LiveQueries } from "./live-queries.ts";

interface Live {
  readonly feed: LiveFeed;
  readonly queries: LiveQueries;
}

const LiveContext = createContext<Live | undefined>(undefined);

function useLive(): Live {
  const live = useContext(LiveContext);
  if (live === undefined) throw new Error("there is nothing live outside of LiveProvider");
  return live;
}

/** Whether the page updates itself, and how to pause that. */
export function useLiveState(): {
  readonly status: FeedStatus;
  readonly isPaused: boolean;
  readonly togglePaused: () => void;
} {
  const { feed, queries } = useLive();
  return {
    status: useSyncExternalStore(feed.status.subscribe, feed.status.get),
    isPaused: useSyncExternalStore(queries.paused.subscribe, queries.paused.get),
    togglePaused: () => queries.togglePaused(),
  };
}

/** Calls `listener` with new events, for views that show the events themselves. */
export function useLiveEvents(listener: (events: readonly RotaEvent[]) => void): void {
  const { feed } = useLive();
  useEffect(() => feed.subscribe({ onEvents: listener, onChanged: () => {} }), [feed, listener]);
}

/** Everything below belongs to one session: another key has other queries and another stream. */
export function LiveProvider({ children }: { readonly children: ReactNode }) {
  const session = useSession();
  const [parts] = useState(() => createParts(session));
  const { queries, live } = parts;
  useEffect(() => {
    live.feed.start();
    live.queries.start();
    const shown = () => live.feed.setHidden(document.hidden);
    document.addEventListener("visibilitychange", shown);
    // A tab may be opened in the background.
    shown();
    return () => {
      document.removeEventListener("visibilitychange", shown);
      live.queries.stop();
      live.feed.stop();
    };
  }, [live]);
  return (
    <QueryContext value={queries}>
      <LiveContext value={live}>{children}</LiveContext>
    </QueryContext>
  );
}

/** Signs out in this tab and in all others that use the same key. */
export function useSignOut(): () => void {
  const { signOut } = useSession();
  const { feed } = useLive();
  return () => {
    feed.stop({ signedOut: true });
    signOut();
  };
}

function createParts(session: Session): { readonly queries: QueryClient; readonly live: Live } {
  const queries = new QueryClient((error) => {
    if (hasCode(error, "unauthorized")) session.refused();
  });
  const feed = createFeed(session);
  return { queries, live: { feed, queries: new LiveQueries(queries, feed) } };
}

function createFeed({ basePaths, me, key, refused, signOut }: Session): LiveFeed {
  // The name contains the path and the key: a tab must never show events of another tenant or of another server on the same host.
  const name = `rota-stream:${basePaths.basePath}:${me.keyId ?? "open"}`;
  const id = String(Math.random()).slice(2);
  const channel = openChannel(name);
  const { locks } = navigator as { readonly locks?: LockManager };
  return new LiveFeed({
    id,
    channel,
    leadership: locks === undefined ? heartbeats(channel, id) : new LockLeadership(locks, name),
    open: openStream(location.origin + basePaths.basePath, key),
    isRefusal: (error) => hasCode(error, "unauthorized"),
    onRefused: refused,
    onSignedOut: signOut,
  });
}

function heartbeats(channel: Channel, id: string): HeartbeatLeadership {
  const leadership = new HeartbeatLeadership(channel, id);
  addEventListener("pagehide", () => leadership.mayEnd());
  return leadership;
}

/** Uses a client of its own, because only the requests of the stream show the status of the stream. */
function openStream(url: string, key: string | undefined): LiveFeedOptions["open"] {
  return ({ after, signal, onGap, onStatus }) => {
    const client = new RotaClient({
      url,
      ...(key === undefined ? {} : { key }),
      fetch: async (input, init) => {
        onStatus("connecting");
        try {
          const response = await fetch(input, init);
          onStatus(response.ok ? "live" : "lost");
          return response;
        } catch (error) {
          if (!signal.aborted) onStatus("lost");
          throw error;
        }
      },
    });
    return client.events({ signal, onGap, ...(after === undefined ? {} : { after }) });
  };
}
