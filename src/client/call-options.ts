/** The last argument of every call of the client. */
export interface CallOptions {
  /** Aborts the call, which throws the signal's reason. The server may still carry out a request that was sent. */
  readonly signal?: AbortSignal;
}
