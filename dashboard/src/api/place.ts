/** Where the server and the app are, below what a proxy may have put in front. */
export interface Place {
  /** Before every path of the API: empty, or `/rota`. */
  readonly basePath: string;
  /** Before every path of the app: `/ui`, or `/rota/ui`. */
  readonly uiPath: string;
}

/** `basePath` comes from the configuration of the server; a browser that opens `/ui/` without the proxy has none. */
export function placeOf(pathname: string, basePath: string): Place {
  const isBelow = pathname === `${basePath}/ui` || pathname.startsWith(`${basePath}/ui/`);
  const used = isBelow ? basePath : "";
  return { basePath: used, uiPath: `${used}/ui` };
}

export function currentPlace(): Place {
  const told = document.querySelector<HTMLMetaElement>('meta[name="rota-base"]')?.content ?? "";
  return placeOf(location.pathname, told);
}
