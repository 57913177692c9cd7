import { type ComponentType, type ReactNode, useEffect, useState } from "react";

/**
 * A component from a file that is loaded when it is first shown. Unlike `lazy`, it is shown as soon as the file is there: React
 * holds back what follows a `Suspense` fallback for 300 ms, at every start of the dashboard twice. Throws what went wrong with
 * the file, for an error boundary.
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
