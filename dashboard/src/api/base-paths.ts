/** The paths of the server and of the app, including the prefix of a proxy. */
export interface BasePaths {
  /** The prefix of every path of the API: empty, or `/rota`. */
  readonly basePath: string;
  /** The prefix of every path of the app: `/ui`, or `/rota/ui`. */
  readonly uiPath: string;
}

/** `basePath` comes from the configuration of the server. A browser that opens `/ui/` without the proxy has none. */
export function basePathsOf(pathname: string, basePath: string): BasePaths {
  const isBelow = pathname === `${basePath}/ui` || pathname.startsWith(`${basePath}/ui/`);
  const used = isBelow ? basePath : "";
  return { basePath: used, uiPath: `${used}/ui` };
}

export function currentBasePaths(): BasePaths {
  const basePath = document.querySelector<HTMLMetaElement>('meta[name="rota-base"]')?.content ?? "";
  return basePathsOf(location.pathname, basePath);
}
