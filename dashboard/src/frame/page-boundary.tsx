import { Component, type ReactNode } from "react";
import { Fault } from "../parts/notices.tsx";
import { Page } from "./page.tsx";

interface Props {
  /** The address: an error is that of one page. */
  readonly at: string;
  readonly children: ReactNode;
}

interface State {
  readonly at?: string;
  readonly error?: unknown;
}

/**
 * An error of a page leaves the frame intact, and ends with the page. After an update of the server its old chunks are gone: a
 * reload fetches the new ones.
 */
export class PageBoundary extends Component<Props, State> {
  override state: State = {};

  static getDerivedStateFromError(error: unknown): State {
    return { error };
  }

  static getDerivedStateFromProps({ at }: Props, state: State): State | null {
    return at === state.at ? null : { at, error: undefined };
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
