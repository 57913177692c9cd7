import { useCallback, useRef, useState } from "react";
import { useQueryClient } from "./query-context.ts";

interface MutationOptions<Result, Input> {
  readonly mutationFn: (input: Input) => Promise<Result>;
  readonly onSuccess?: ((result: Result, input: Input) => void) | undefined;
  readonly onError?: (error: Error) => void;
  readonly onSettled?: (input: Input) => void;
}

interface Mutation<Input> {
  readonly mutate: (input: Input) => void;
  readonly isPending: boolean;
  /** Why the last call failed. */
  readonly error: Error | null;
}

const IDLE = { isPending: false, error: null };

/** Changes something on the server. What follows happens also if the component is gone by then. */
export function useMutation<Result, Input = void>(options: MutationOptions<Result, Input>): Mutation<Input> {
  const { onError: onAnyError } = useQueryClient();
  const [state, setState] = useState<{ readonly isPending: boolean; readonly error: Error | null }>(IDLE);
  const current = useRef(options);
  current.current = options;
  /** Of several calls at once the last one is shown. */
  const calls = useRef(0);
  const mutate = useCallback(
    (input: Input) => {
      const call = ++calls.current;
      const show = (error: Error | null) => {
        if (call === calls.current) setState({ isPending: false, error });
      };
      const { mutationFn } = current.current;
      setState({ isPending: true, error: null });
      const run = async () => {
        try {
          const result = await mutationFn(input);
          show(null);
          current.current.onSuccess?.(result, input);
        } catch (caught) {
          const error = caught as Error;
          show(error);
          onAnyError(error);
          current.current.onError?.(error);
        }
        current.current.onSettled?.(input);
      };
      void run();
    },
    [onAnyError],
  );
  return { ...state, mutate };
}
