import { ConnectionError } from "../../client/index.ts";
import { RotaError } from "../../model/errors.ts";

/** Whether the message of an error says all there is to say: it is about a wrong input, or a server that is away. */
export function isExpectedError(error: unknown): error is RotaError | ConnectionError {
  return error instanceof ConnectionError || (error instanceof RotaError && error.status < 500);
}
