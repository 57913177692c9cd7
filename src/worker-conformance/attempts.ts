/** A task of the test server, and what the worker did with it. */
export interface TestAttempt {
  readonly token: string;
  readonly taskId: string;
  readonly agentId: string;
  readonly message: string;
  /** `ended`: the server no longer counts it for the worker. */
  state: "queued" | "held" | "ended";
  /** The registration that holds it. */
  workerId?: string;
  /** Why the worker has to stop it; the next heartbeat returns it. */
  cancel?: string;
  /** How many bodies of finish requests named it. */
  finishes: number;
  /** Whether a repeated finish said something else than the first one. */
  isChanged?: boolean;
  outcome?: string;
  result?: unknown;
  error?: string;
  retryable?: boolean;
}

/** A worker as it registered. */
export interface TestRegistration {
  readonly workerId: string;
  readonly instanceId: string | undefined;
  readonly agents: readonly string[];
  readonly slots: number;
  drain: boolean;
}

/** The calls of the protocol. */
export const CALLS = ["register", "claim", "heartbeat", "finish", "delete", "dependency", "session"] as const;
export type Call = (typeof CALLS)[number];

/** A request as the worker sent it. */
export interface Received {
  readonly call: Call;
  /** By the monotonic clock of this process, in milliseconds. */
  readonly at: number;
  readonly body: Readonly<Record<string, unknown>>;
  /** When the response was sent; undefined: it is open, or the worker closed it. */
  answeredAt?: number;
}

/** What happens to a request instead of a response. */
export type Fault =
  /** The request is carried out, and the connection closed without a response. */
  | { readonly kind: "lose-answer" }
  /** The request is not carried out. */
  | {
      readonly kind: "refuse";
      readonly status: number;
      readonly code: string;
      readonly retryAfterSec?: number;
    }
  /** Instead of a claim: an empty response with these fields. */
  | { readonly kind: "answer"; readonly answer: Record<string, unknown> };
