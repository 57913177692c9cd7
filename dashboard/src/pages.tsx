import { useState } from "react";
import { Redirect, Route, Router, Switch } from "wouter";
import { useSession } from "./api/session.tsx";
import { Frame } from "./frame/frame.tsx";
import { Page } from "./frame/page.tsx";
import { PageBoundary } from "./frame/page-boundary.tsx";
import { LiveProvider } from "./live/live.tsx";
import { Loadable, LoadableFile } from "./parts/loadable.tsx";
import { Empty } from "./parts/notices.tsx";
import { ToastProvider } from "./parts/toast.tsx";
import { navOf, viewsFor } from "./views/registry.ts";

/** Everything that needs a signed-in user. */
export default function SignedIn() {
  return (
    <LiveProvider>
      <Pages />
    </LiveProvider>
  );
}

function Pages() {
  const { me, basePaths } = useSession();
  const [{ nav, routes }] = useState(() => {
    const views = viewsFor(me);
    const pages = views.flatMap((view) => view.routes);
    return {
      nav: navOf(views),
      routes: pages.map(({ path, load }) => ({ path, file: new LoadableFile(load) })),
    };
  });
  const first = nav[0]?.items[0]?.path ?? "/tasks";
  return (
    <Router base={basePaths.uiPath}>
      <ToastProvider>
        <Frame nav={nav}>
          <PageBoundary>
            <Switch>
              {routes.map(({ path, file }) => (
                <Route key={path} path={path}>
                  {(params) => (
                    <Loadable
                      file={file}
                      props={{ params: params as Record<string, string> }}
                      fallback={<Page title="" />}
                    />
                  )}
                </Route>
              ))}
              <Route path="/">
                <Redirect to={first} replace />
              </Route>
              <Route>
                <Page title="Not found">
                  <Empty title="There is no such page">
                    The address may be mistyped, or of another version.
                  </Empty>
                </Page>
              </Route>
            </Switch>
          </PageBoundary>
        </Frame>
      </ToastProvider>
    </Router>
  );
}
