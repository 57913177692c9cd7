import type { Me } from "../../../src/client/index.ts";
import { isAllowed } from "../api/permissions.ts";
import { matchPath } from "../parts/router.tsx";
import { NAV_GROUPS, type View } from "./view.ts";

/** Every folder below `views/` with a `view.ts`: a new view need not be added here. */
const found = import.meta.glob<{ readonly default: View }>("./*/view.ts", { eager: true });
const ALL: readonly View[] = Object.values(found).map(({ default: view }) => view);

export interface NavGroup {
  readonly group: string;
  readonly items: readonly NonNullable<View["nav"]>[];
}

/** Whether there is such a page, for whatever role. */
export function isPage(location: string): boolean {
  return ALL.some(({ routes }) => routes.some(({ path }) => matchPath(path, location) !== undefined));
}

/** The views that the role of the user and the features of the server allow. */
export function viewsFor({ role, features }: Me): readonly View[] {
  return ALL.filter(
    ({ needs = "readOwn", feature }) =>
      isAllowed(role, needs) && (feature === undefined || features.includes(feature)),
  );
}

export function navOf(views: readonly View[]): readonly NavGroup[] {
  const items = views.flatMap(({ nav }) => (nav === undefined ? [] : [nav]));
  items.sort((one, other) => one.order - other.order);
  return NAV_GROUPS.map((group) => ({ group, items: items.filter((item) => item.group === group) })).filter(
    (each) => each.items.length > 0,
  );
}
