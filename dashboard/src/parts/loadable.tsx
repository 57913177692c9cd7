import { type ComponentType, useEffect, useReducer, useState } from "react";

/** A file with one component. */
export class LoadableFile<Props extends object> {
  readonly load: () => Promise<void>;
  loaded: ComponentType<Props> | undefined;

  constructor(load: () => Promise<{ readonly default: ComponentType<Props> }>) {
    this.load = async () => {
      this.loaded ??= (await load()).default;
    };
  }
}

export interface LoadableProps<Props extends object> {
  readonly file: LoadableFile<Props>;
  readonly props: Props;
}

/**
 * The component of a file, loaded when it is first shown. Unlike with `lazy`, it is shown as soon as the file is there: React
 * holds back what follows a `Suspense` fallback for 300 ms, at every start of the dashboard. Throws the error of a file
 * that cannot be loaded, for an error boundary.
 */
export function Loadable<Props extends object>({ file, props }: LoadableProps<Props>) {
  const [, showAgain] = useReducer((count: number) => count + 1, 0);
  const [failure, setFailure] = useState<{ readonly error: unknown }>();
  useEffect(() => {
    if (file.loaded === undefined) file.load().then(showAgain, (error: unknown) => setFailure({ error }));
  }, [file]);
  if (failure !== undefined) throw failure.error;
  const Shown = file.loaded;
  return Shown === undefined ? null : <Shown {...props} />;
}
