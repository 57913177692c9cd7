/** What every call of the client takes at its end. */
export interface CallOptions {
  /** Gives up: the call throws the signal's reason. What was sent may have been carried out all the same. */
  readonly signal?: AbortSignal;
}
