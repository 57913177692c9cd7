import type { ReactNode } from "react";
import { useSession } from "../api/session.tsx";
import { useLiveState } from "../live/live.tsx";
import { IconButton } from "../parts/button.tsx";
import { Icon } from "../parts/icon.tsx";
import { Banners, useIsAway } from "./banners.tsx";
import { usePalette } from "./palette.tsx";
import { switchTheme } from "./theme.ts";

const IS_MAC = /mac|iphone|ipad/i.test(navigator.userAgent);

export function PageHeader({
  heading,
  children,
}: {
  readonly heading: ReactNode;
  readonly children: ReactNode;
}) {
  const openPalette = usePalette();
  return (
    <>
      <header className="top">
        {heading}
        <div className="top-end">
          {children}
          <button type="button" className="find" onClick={openPalette}>
            <Icon name="search" />
            <span>Search or jump to…</span>
            <span className="kbd" aria-hidden="true">
              {IS_MAC ? "⌘K" : "Ctrl K"}
            </span>
          </button>
          <LiveButton />
          <IconButton icon="theme" label="Switch theme" onClick={switchTheme} />
        </div>
      </header>
      <Banners />
    </>
  );
}

const WORDS = { connecting: "Connecting", live: "Live", lost: "Offline", busy: "Busy: sampled" } as const;

/** Shows whether the page updates itself, and switches that. */
function LiveButton() {
  const { status: ofStream, isPaused, togglePaused } = useLiveState();
  const { me } = useSession();
  const status = useIsAway() ? "lost" : ofStream;
  return (
    <button
      type="button"
      className={`live live-${status}`}
      aria-pressed={isPaused}
      title={`${isPaused ? "Go on" : "Pause live updates"} (p) · node ${me.node}`}
      onClick={togglePaused}
    >
      {isPaused ? "Paused" : WORDS[status]}
    </button>
  );
}
