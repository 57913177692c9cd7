import { useEffect, useState } from "react";
import { useSession } from "./api/session.tsx";
import { Frame } from "./frame/frame.tsx";
import { Page } from "./frame/page.tsx";
import { PageBoundary } from "./frame/page-boundary.tsx";
import { LiveProvider } from "./live/live.tsx";
import { Empty } from "./parts/notices.tsx";
import { Link, matchPath, RouterBase, useLocation, useSearch } from "./parts/router.tsx";
import { ToastProvider } from "./parts/toast.tsx";
import { isPage, navOf, viewsFor } from "./views/registry.ts";

/** Everything that needs a signed-in user. */
export default function SignedIn() {
  const { basePaths } = useSession();
  return (
    <LiveProvider>
      <RouterBase base={basePaths.uiPath}>
        <ToastProvider>
          <Pages />
        </ToastProvider>
      </RouterBase>
    </LiveProvider>
  );
}

function Pages() {
  const { me } = useSession();
  const [location, navigate] = useLocation();
  const search = useSearch();
  const [{ nav, routes }] = useState(() => {
    const views = viewsFor(me);
    return { nav: navOf(views), routes: views.flatMap((view) => view.routes) };
  });
  const route = routes.find(({ path }) => matchPath(path, location) !== undefined);
  const isHidden = route === undefined && isPage(location);
  const first = nav[0]?.items[0]?.path ?? "/tasks";
  // Users who may not see the overview begin elsewhere.
  const isElsewhere = route === undefined && location === "/";
  useEffect(() => {
    if (isElsewhere) navigate(first, { replace: true });
  }, [isElsewhere, first, navigate]);
  return (
    <Frame nav={nav}>
      <PageBoundary at={`${location}?${search}`}>
        {route !== undefined ? (
          <route.page key={route.path} params={matchPath(route.path, location) ?? {}} />
        ) : (
          !isElsewhere && (
            <Page title={isHidden ? "Not allowed" : "Not found"}>
              <Empty
                title={isHidden ? "Your key may not see this page" : "There is no such page"}
                action={
                  <Link className="btn" href={first}>
                    Go to the start page
                  </Link>
                }
              >
                {isHidden
                  ? `Its role is ${me.role}. Sign in with a key of another role, or ask an admin.`
                  : "The address may be mistyped, or of another version."}
              </Empty>
            </Page>
          )
        )}
      </PageBoundary>
    </Frame>
  );
}
