import { Component, type ReactNode } from "react";
import { Fault } from "../parts/notices.tsx";
import { Page } from "./page.tsx";

interface State {
  readonly error: unknown;
}

/**
 * An error of a page leaves the frame intact. After an update of the server its old chunks are gone: a reload fetches the new
 * ones.
 */
export class PageBoundary extends Component<{ readonly children: ReactNode }, State> {
  override state: State = { error: undefined };

  static getDerivedStateFromError(error: unknown): State {
    return { error };
  }

  override render(): ReactNode {
    if (this.state.error === undefined) return this.props.children;
    return (
      <Page title="This page is broken">
        <Fault error={this.state.error} what="This page" onRetry={() => location.reload()} />
      </Page>
    );
  }
}
