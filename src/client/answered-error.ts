import { ERROR_STATUS, type ErrorCode, RotaError } from "../model/errors.ts";
import { isObject } from "../model/input/field-checks.ts";

/** The error in the body of a response. Undefined if the body is not Rota's. */
export function answeredError(status: number, body: unknown): RotaError | undefined {
  if (!isObject(body)) return undefined;
  const { code, error, retryable, details } = body;
  if (typeof code !== "string" || typeof error !== "string") return undefined;
  const options = isObject(details) ? { details: { ...details } } : {};
  if (Object.hasOwn(ERROR_STATUS, code)) return new RotaError(code as ErrorCode, error, options);
  return new NewerError(code, error, { ...options, status, retryable: retryable === true });
}

/** An error with a code of a newer server. The rest is as the server sent it. */
class NewerError extends RotaError {
  readonly #status: number;
  readonly #retryable: boolean;

  constructor(
    code: string,
    message: string,
    options: { details?: Record<string, unknown>; status: number; retryable: boolean },
  ) {
    super(code as ErrorCode, message, options);
    this.#status = options.status;
    this.#retryable = options.retryable;
  }

  override get status(): number {
    return this.#status;
  }

  override get retryable(): boolean {
    return this.#retryable;
  }
}
