/** The paths of the server and of the app, including the prefix of a proxy. */
export interface Place {
  /** The prefix of every path of the API: empty, or `/rota`. */
  readonly basePath: string;
  /** The prefix of every path of the app: `/ui`, or `/rota/ui`. */
  readonly uiPath: string;
}

/** `basePath` comes from the configuration of the server. A browser that opens `/ui/` without the proxy has none. */
export function placeOf(pathname: string, basePath: string): Place {
  const isBelow = pathname === `${basePath}/ui` || pathname.startsWith(`${basePath}/ui/`);
  const used = isBelow ? basePath : "";
  return { basePath: used, uiPath: `${used}/ui` };
}

export function currentPlace(): Place {
  const told = document.querySelector<HTMLMetaElement>('meta[name="rota-base"]')?.content ?? "";
  return placeOf(location.pathname, told);
}
