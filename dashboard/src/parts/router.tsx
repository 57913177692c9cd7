import {
  type ComponentProps,
  createContext,
  type MouseEvent,
  type ReactNode,
  useCallback,
  useContext,
  useMemo,
  useSyncExternalStore,
} from "react";

type Navigate = (to: string, options?: { readonly replace?: boolean }) => void;

/** Called whenever the address changes. The browser reports only the back and forward buttons. */
const listeners = new Set<() => void>();
const changed = () => {
  for (const listener of listeners) listener();
};

function subscribe(listener: () => void): () => void {
  listeners.add(listener);
  addEventListener("popstate", listener);
  return () => {
    listeners.delete(listener);
    removeEventListener("popstate", listener);
  };
}

const navigateTo: Navigate = (to, { replace = false } = {}) => {
  history[replace ? "replaceState" : "pushState"](null, "", to);
  changed();
};

const BaseContext = createContext("");

/** All addresses below are relative to `base`, which may contain the prefix of a proxy. */
export function RouterBase({ base, children }: { readonly base: string; readonly children: ReactNode }) {
  return <BaseContext value={base}>{children}</BaseContext>;
}

export function useBase(): string {
  return useContext(BaseContext);
}

/** The path of the page, and how to go to another one. */
export function useLocation(): readonly [string, Navigate] {
  const base = useBase();
  const path = useSyncExternalStore(subscribe, () => location.pathname);
  const navigate = useCallback<Navigate>((to, options) => navigateTo(base + to, options), [base]);
  return [path.startsWith(base) ? path.slice(base.length) || "/" : path, navigate];
}

/** The query of the address, without `?`. */
export function useSearch(): string {
  return useSyncExternalStore(subscribe, () => location.search).slice(1);
}

type SetSearchParams = (
  change: (current: URLSearchParams) => URLSearchParams,
  options?: { readonly replace?: boolean },
) => void;

export function useSearchParams(): readonly [URLSearchParams, SetSearchParams] {
  const search = useSearch();
  const params = useMemo(() => new URLSearchParams(search), [search]);
  const set = useCallback<SetSearchParams>((change, options) => {
    // What the address is now: two changes in a row both count.
    const query = change(new URLSearchParams(location.search)).toString();
    navigateTo(query === "" ? location.pathname : `?${query}`, options);
  }, []);
  return [params, set];
}

interface LinkProps extends ComponentProps<"a"> {
  readonly href: string;
}

/** A link to another page. With a modifier key the browser opens it as usual, in a new tab for instance. */
export function Link({ href, onClick, ...rest }: LinkProps) {
  const [, navigate] = useLocation();
  const follow = (event: MouseEvent<HTMLAnchorElement>) => {
    const isModified = event.ctrlKey || event.metaKey || event.altKey || event.shiftKey;
    if (isModified || event.button !== 0) return;
    onClick?.(event);
    if (event.defaultPrevented) return;
    event.preventDefault();
    navigate(href);
  };
  return <a {...rest} href={useBase() + href} onClick={follow} />;
}

/** The parameters of a path that has the form of a pattern like `/tasks/:id`. Undefined: it has another form. */
export function matchPath(pattern: string, path: string): Readonly<Record<string, string>> | undefined {
  const names = pattern.split("/");
  const parts = path.replace(/(?!^)\/$/, "").split("/");
  if (names.length !== parts.length) return undefined;
  const params: Record<string, string> = {};
  for (const [index, name] of names.entries()) {
    const part = parts[index] ?? "";
    if (name.startsWith(":") && part !== "") params[name.slice(1)] = decoded(part);
    else if (name !== part) return undefined;
  }
  return params;
}

function decoded(part: string): string {
  try {
    return decodeURIComponent(part);
  } catch {
    return part;
  }
}
