import { type ReactNode, useEffect, useRef } from "react";
import { useFocusAfterNavigation } from "./navigation.ts";
import { PageHeader } from "./page-header.tsx";

interface PageProps {
  /** In the top bar and in the title of the tab. */
  readonly title: string;
  /** Replaces the title in the top bar: the path of the page, with a way back. Then the page has its own `h1`. */
  readonly crumb?: ReactNode;
  /** In the top bar, before the search. */
  readonly actions?: ReactNode;
  readonly children?: ReactNode;
}

/** What every view returns: the top bar and the content. */
export function Page({ title, crumb, actions, children }: PageProps) {
  useEffect(() => {
    document.title = `${title} · Rota`;
  }, [title]);
  const main = useRef<HTMLElement>(null);
  useFocusAfterNavigation(main);
  return (
    <div className="main">
      <PageHeader heading={crumb === undefined ? <h1>{title}</h1> : <div className="crumb">{crumb}</div>}>
        {actions}
      </PageHeader>
      <main ref={main} className="sheet" id="content" tabIndex={-1}>
        {children}
      </main>
    </div>
  );
}
