import { type ComponentType, type ReactNode, useEffect, useState } from "react";

/**
 * A component from a file that is loaded when it is first shown. Unlike with `lazy`, it is shown as soon as the file has loaded:
 * React delays the content after a `Suspense` fallback by 300 ms, twice at every start of the dashboard. Throws load errors, for
 * an error boundary.
 */
export function loadable<Props extends object>(
  load: () => Promise<{ readonly default: ComponentType<Props> }>,
  fallback: ReactNode = null,
): ComponentType<Props> {
  let loaded: ComponentType<Props> | undefined;
  return function Loadable(props: Props) {
    const [Shown, setShown] = useState(() => loaded);
    const [failure, setFailure] = useState<{ readonly error: unknown }>();
    useEffect(() => {
      if (loaded !== undefined) return;
      load().then(
        (file) => {
          loaded = file.default;
          setShown(() => loaded);
        },
        (error: unknown) => setFailure({ error }),
      );
    }, []);
    if (failure !== undefined) throw failure.error;
    return Shown === undefined ? fallback : <Shown {...props} />;
  };
}
