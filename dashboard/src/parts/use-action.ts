import { sentenceOf } from "../api/errors.ts";
import { useQueryClient } from "../queries/query-context.ts";
import { useMutation } from "../queries/use-mutation.ts";
import { useToast } from "./toast.tsx";

interface ActionOptions<Input, Result> {
  /** What was done, in a few words. */
  readonly said?: (result: Result, input: Input) => string;
  readonly onDone?: (result: Result) => void;
  /** The beginning of the keys of the queries that it changes. */
  readonly changes?: readonly unknown[];
}

/** Something that a button does. It shows what was done, or why it could not be, and refetches what it changed. */
export function useAction<Input, Result>(
  run: (input: Input) => Promise<Result>,
  { said, onDone, changes }: ActionOptions<Input, Result>,
) {
  const queries = useQueryClient();
  const toast = useToast();
  return useMutation({
    mutationFn: run,
    onSuccess: (result, input) => {
      if (said !== undefined) toast(said(result, input));
      onDone?.(result);
    },
    onError: (error) => toast(sentenceOf(error)),
    onSettled: () => changes && void queries.invalidateQueries({ queryKey: changes }),
  });
}
