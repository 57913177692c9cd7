/** What is done to every system alike: the smallest thing that all of them can do. */
export interface Queue {
  /** Hands one task in; resolves once it is accepted. */
  add(task: Task): Promise<void>;
  /** Hands many in with one call. */
  addMany(tasks: readonly Task[]): Promise<void>;
  /** Begins to run what waits, and what comes. */
  start(handler: Handler): Promise<void>;
  /** Resolves once every end is written down. Asked when all tasks have been started. */
  drained(): Promise<void>;
  /** Tasks may go on being started until it resolves. */
  stop(): Promise<void>;
}

/** A type and not an interface, since it is also a payload, which is JSON. */
export type Task = {
  readonly agentId: string;
  readonly n: number;
};

export type Handler = (task: Task) => unknown;

/** A system on one kind of storage: a column of the table. */
export interface System {
  /** As the table calls it. */
  readonly name: string;
  readonly storage: StorageKind;
  /** The package in this folder's package.json whose version is reported; null: Rota itself. */
  readonly package: string | null;
  /** When an accepted task is safe, and whether an ended one is. */
  readonly durability: string;
  /** What Rota does that it does not; null: nothing. */
  readonly lacks: string | null;
  readonly goals: PeerGoals;
  /** What its documentation suggests for throughput. The quickest of them is used. */
  readonly tunings: readonly Tuning[];
  open(params: OpenParams): Promise<Queue>;
}

/** How many times as good as this one Rota is to be; null: it is only reported, since the two do not promise the same. */
export interface PeerGoals {
  readonly drain: number | null;
  readonly latency: number | null;
  readonly others: number | null;
}

/** As good as: a tenth less is within what machines differ from one run to the next. */
export const EQUAL = 0.9;

export type StorageKind = "sqlite" | "postgres" | "redis everysec" | "redis always";

export interface OpenParams {
  readonly url: string;
  readonly tuning: Tuning;
}

export interface Tuning {
  /** Tasks that are being run at once, at most. */
  readonly atOnce: number;
  /** How often it polls for tasks; 0: it is notified instead. */
  readonly pollMs: number;
  /** The system's own words: they are printed as they are, and given to it. */
  readonly options: Readonly<Record<string, number>>;
}

export function optionOf({ options }: Tuning, name: string): number {
  const value = options[name];
  if (value === undefined) throw new Error(`the tuning has no ${name}`);
  return value;
}
