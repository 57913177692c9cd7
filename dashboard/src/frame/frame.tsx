import { type ReactNode, useState } from "react";
import { useSession } from "../api/session.tsx";
import { useKeys } from "../keys/use-keys.ts";
import { useLiveState, useSignOut } from "../live/live.tsx";
import { Button } from "../parts/button.tsx";
import { Dialog } from "../parts/dialog.tsx";
import { Icon, Mark } from "../parts/icon.tsx";
import { useKeptSearch } from "../parts/kept-search.ts";
import { Link, useLocation } from "../parts/router.tsx";
import { showWholeText } from "../parts/whole-text.ts";
import { useZone, ZONES, type Zone } from "../parts/zone.ts";
import type { NavGroup } from "../views/registry.ts";
import { useFreshNode } from "./banners.tsx";
import { KeyHelp } from "./key-help.tsx";
import { useNavigation } from "./navigation.ts";
import { PaletteProvider } from "./palette.tsx";
import { switchTheme } from "./theme.ts";

interface FrameProps {
  readonly nav: readonly NavGroup[];
  readonly children: ReactNode;
}

/** How many pages fit into the tab bar of a phone, beside "More". */
const TABS = 4;

document.addEventListener("mouseover", showWholeText);

/** The frame of every page: the navigation, the signed-in user, and the global keys. */
export function Frame({ nav, children }: FrameProps) {
  const [open, setOpen] = useState<"more" | "account" | "keys">();
  const { togglePaused } = useLiveState();
  const [, navigate] = useLocation();
  const close = () => setOpen(undefined);
  const hrefOf = useKeptSearch();
  useNavigation();
  useFreshNode();
  const items = nav.flatMap((group) => group.items);
  useKeys({
    p: togglePaused,
    "?": () => setOpen("keys"),
    ...Object.fromEntries(
      items.flatMap(({ key, path }) =>
        key === undefined ? [] : [[`g ${key}`, () => navigate(hrefOf(path))]],
      ),
    ),
  });
  return (
    <PaletteProvider items={items}>
      <a className="skip" href="#content">
        Skip to content
      </a>
      <div className="app">
        <aside className="side" aria-label="Rota">
          <Tenant onOpen={() => setOpen("account")} />
          {nav.map((group) => (
            <nav className="nav" aria-label={group.group} key={group.group}>
              {group.group !== "Work" && <h2>{group.group}</h2>}
              {group.items.map(({ path, icon, label }) => (
                <NavLink key={path} path={path} href={hrefOf(path)} title={label}>
                  <Icon name={icon} />
                  <span>{label}</span>
                </NavLink>
              ))}
            </nav>
          ))}
          <Foot />
        </aside>
        {children}
        <nav className="tabbar" aria-label="Main">
          {items.slice(0, TABS).map(({ path, icon, label }) => (
            <NavLink key={path} path={path} href={hrefOf(path)}>
              <Icon name={icon} />
              {label}
            </NavLink>
          ))}
          <button type="button" onClick={() => setOpen("more")}>
            <Icon name="menu" />
            More
          </button>
        </nav>
      </div>
      {open === "more" && (
        <Dialog title="More" onClose={close} size="small">
          <nav className="nav more-nav" aria-label="All pages">
            {items.map(({ path, icon, label }) => (
              <NavLink key={path} path={path} href={hrefOf(path)} onClick={close}>
                <Icon name={icon} />
                <span>{label}</span>
              </NavLink>
            ))}
          </nav>
          <Account onDone={close} />
        </Dialog>
      )}
      {open === "account" && (
        <Dialog title="Tenant and key" onClose={close} size="small">
          <Account onDone={close} />
        </Dialog>
      )}
      {open === "keys" && <KeyHelp items={items} onClose={close} />}
    </PaletteProvider>
  );
}

function NavLink(props: {
  readonly path: string;
  readonly href: string;
  /** Where the bar has room for icons alone, the pointer shows it. */
  readonly title?: string;
  readonly onClick?: () => void;
  readonly children: ReactNode;
}) {
  const [location] = useLocation();
  const { path, href, title, onClick, children } = props;
  // The path of one session is not below that of all sessions.
  const isBelow = path !== "/" && (location.startsWith(`${path}/`) || `${location}s` === path);
  // A batch has no list of its own: its tasks are in that of all tasks.
  const isBatch = path === "/tasks" && location.startsWith("/batches/");
  const isHere = location === path || isBelow || isBatch;
  return (
    <Link href={href} title={title} aria-current={isHere ? "page" : undefined} onClick={onClick}>
      {children}
    </Link>
  );
}

function Tenant({ onOpen }: { readonly onOpen: () => void }) {
  const { me } = useSession();
  return (
    <button type="button" className="tenant" onClick={onOpen}>
      <Mark />
      <span>
        <b className="cut">{me.tenantName}</b>
        <small className="cut">
          {me.role}
          {me.keyName === null ? " · no key needed" : ` · ${me.keyName}`}
        </small>
      </span>
      <span className="vh">Tenant and key</span>
    </button>
  );
}

function Foot() {
  const { me } = useSession();
  return (
    <div className="side-foot">
      <span className="cut" title={me.node}>
        Node {me.node}
      </span>
      <span>Rota {me.version}</span>
    </div>
  );
}

/** The signed-in user and the server. */
function Account({ onDone }: { readonly onDone: () => void }) {
  const { me } = useSession();
  const { isPaused, togglePaused } = useLiveState();
  const signOut = useSignOut();
  const [zone, setZone] = useZone();
  return (
    <div className="dialog-form">
      <dl className="props">
        <dt>Tenant</dt>
        <dd>{me.tenantName}</dd>
        <dt>Role</dt>
        <dd>{me.role}</dd>
        {me.agentId !== undefined && (
          <>
            <dt>Agent</dt>
            <dd>{me.agentId}</dd>
          </>
        )}
        <dt>Key</dt>
        <dd>{me.keyName ?? "none: this server has no keys"}</dd>
        <dt>Node</dt>
        <dd className="mono">{me.node}</dd>
        <dt>Version</dt>
        <dd>{me.version}</dd>
        <dt>
          <label htmlFor="zone">Times in</label>
        </dt>
        <dd>
          <span className="select">
            <select
              className="input"
              id="zone"
              value={zone}
              onChange={({ target }) => setZone(target.value as Zone)}
            >
              {Object.entries(ZONES).map(([each, word]) => (
                <option key={each} value={each}>
                  {word}
                </option>
              ))}
            </select>
            <Icon name="down" size={12} />
          </span>
        </dd>
      </dl>
      <div className="btn-group">
        <Button icon={isPaused ? "play" : "pause"} onClick={togglePaused}>
          {isPaused ? "Go on live" : "Pause live updates"}
        </Button>
        <Button icon="theme" onClick={switchTheme}>
          Switch theme
        </Button>
        {me.keyId !== null && (
          <Button
            icon="lock"
            onClick={() => {
              onDone();
              signOut();
            }}
          >
            Sign out
          </Button>
        )}
      </div>
    </div>
  );
}
