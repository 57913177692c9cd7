import type { Settlement } from "../../model/outcome.ts";
import type { TaskRecord } from "../../model/task-record.ts";
import type { ClaimedTask, FinishAndClaimParams, NewTask, Storage, StoredEvent } from "../storage.ts";
import type { SteppedClock } from "./clock.ts";
import {
  type Command,
  type Finish,
  LANES,
  NODES,
  type Pick,
  type SubmittedTask,
  TENANTS,
} from "./commands.ts";
import { newTask } from "./world.ts";

interface Claim {
  readonly node: string;
  readonly seq: number;
  readonly token: number;
}

/**
 * One of the two storages a property test compares, with what it has told so far. Numbers may have holes on one side
 * and not on the other, so answers are made comparable: tokens become places in the list of claims, and tasks are
 * known by their ids, whose order `list` and the events show.
 */
export class Side {
  readonly storage: Storage;
  readonly #clock: SteppedClock;
  readonly #nodes: string[] = [];
  readonly #crashed: string[] = [];
  readonly #tasks: { tenant: string; id: string }[] = [];
  readonly #claims: Claim[] = [];
  readonly #eventsSeen: number[] = [];
  #lastId = 0;

  private constructor(storage: Storage, clock: SteppedClock) {
    this.storage = storage;
    this.#clock = clock;
  }

  /** Makes the lanes and registers the nodes that commands speak of. */
  static async start(storage: Storage, clock: SteppedClock): Promise<Side> {
    const side = new Side(storage, clock);
    const bounds = { total: null, perAgent: null, strategy: "fair-fifo" } as const;
    await storage.lanes.configure({ lanes: LANES.map((name) => ({ name, ...bounds })) });
    for (let node = 0; node < NODES; node += 1) await side.#startNode(node);
    return side;
  }

  /** Does what the command says and answers in comparable terms. Waiting is done by whoever owns the clock. */
  async run(command: Command): Promise<unknown> {
    const { tasks, nodes, lanes, agents, counters } = this.storage;
    switch (command.do) {
      case "submit":
        return this.#submit(command);
      case "step":
        return this.#step({
          node: this.#nodes[command.node] ?? "",
          finishes: command.finishes.flatMap((finish) => this.#finish(finish)),
          progress: command.progress.flatMap((pick) => this.#pickClaims(pick, "half way")),
          claims: command.claims,
        });
      case "cancel": {
        const { tenant, error } = command;
        const ids = command.picks.map((pick) => choose(this.#tasks, pick)?.id ?? "unknown");
        const answers = await tasks.cancel({ tenant, ids, error });
        return answers.map((answer) =>
          "token" in answer && answer.token !== null
            ? { ...answer, token: this.#claimOf(answer.token) }
            : answer,
        );
      }
      case "retry": {
        const answer = await tasks.retry(
          choose(this.#tasks, command.pick) ?? { tenant: "acme", id: "unknown" },
        );
        return "task" in answer ? { ...answer, task: { ...answer.task, seq: null } } : answer;
      }
      case "expire":
        return tasks.expire(command);
      case "promote":
        return tasks.promoteDue(command);
      case "wait":
        return undefined;
      case "crash":
        return this.#crash(command.node);
      case "rescue":
        return this.#rescue(choose(this.#crashed, command.pick) ?? "nobody", command.limit);
      case "heartbeat": {
        const { alive, tokens } = await nodes.heartbeat({ node: this.#nodes[command.node] ?? "" });
        return { alive, tokens: tokens.map((token) => this.#claimOf(token)).sort() };
      }
      case "configureLane": {
        const { name, total, perAgent, strategy } = command;
        return lanes.configure({ lanes: [{ name, total, perAgent, strategy }] });
      }
      case "configureAgent":
        return agents.configure(command);
      case "prune":
        return this.#prune(command);
      case "recount":
        return counters.recountOne(command);
    }
  }

  /** Everything that can be seen from outside, in comparable terms, and what counts itself wrong. */
  async look() {
    const { tasks, nodes, lanes, counters, events } = this.storage;
    const [tenants, newEvents, range, dueAt, nodeList, laneList, faults] = await Promise.all([
      Promise.all(TENANTS.map((tenant) => this.#lookAtTenant(tenant))),
      events.read({ after: this.#eventsSeen.at(-1) ?? 0, limit: 10_000 }),
      events.range(),
      tasks.nextDueAt(),
      nodes.list(),
      lanes.list(),
      counters.recountAll(),
    ]);
    this.#eventsSeen.push(...newEvents.map(({ seq }) => seq));
    return {
      tenants,
      events: newEvents.map((event) => this.#comparableEvent(event)),
      range: {
        oldest: this.#eventsSeen.indexOf(range.oldest),
        newest: this.#eventsSeen.indexOf(range.newest),
      },
      dueAt,
      nodes: nodeList.sort((a, b) => (a.node < b.node ? -1 : 1)),
      lanes: laneList.sort((a, b) => (a.name < b.name ? -1 : 1)),
      faults,
    };
  }

  async #lookAtTenant(tenant: string) {
    const [list, counts, depth] = await Promise.all([
      this.storage.tasks.list({ tenant, limit: 10_000 }),
      this.storage.tasks.counts({ tenant }),
      this.storage.tasks.queueDepth({ tenant }),
    ]);
    return { tasks: list.tasks.map(comparableTask), nextCursor: list.nextCursor, counts, depth };
  }

  async #submit({ tasks, maxQueueSize, maxPerAgent }: Extract<Command, { do: "submit" }>) {
    const repeated = new Set<string>();
    const inputs = tasks.map((task) => {
      const earlier = task.repeats === null ? undefined : choose(this.#tasks, task.repeats);
      if (earlier !== undefined) repeated.add(earlier.id);
      else this.#lastId += 1;
      const input = this.#toNewTask(task, earlier?.id ?? `task-${this.#lastId}`);
      if (earlier === undefined) this.#tasks.push({ tenant: input.tenant, id: input.id });
      return input;
    });
    const answers = await this.storage.tasks.insert({ tasks: inputs, limits: { maxQueueSize, maxPerAgent } });
    return answers.map(({ seq: _seq, rejection, ...answer }) => {
      // How full the queue was is told once and not kept.
      const told = rejection !== null && repeated.has(answer.id) ? { full: rejection.full } : rejection;
      return { ...answer, rejection: told };
    });
  }

  #toNewTask({ repeats: _repeats, runAfterMs, deadlineMs, ...task }: SubmittedTask, id: string): NewTask {
    const now = this.#clock.now();
    const runAt = runAfterMs === null ? null : now + runAfterMs;
    return newTask({ ...task, id, runAt, deadline: deadlineMs === null ? null : now + deadlineMs });
  }

  async #step(params: FinishAndClaimParams) {
    const { finished, claimed, expired } = await this.storage.tasks.finishAndClaim(params);
    const ended = finished.map(({ token, state }) => ({ claim: this.#claimOf(token), state }));
    for (const { token, task } of claimed) this.#claims.push({ node: params.node, seq: task.seq, token });
    return { ended, claimed: claimed.map(({ task }: ClaimedTask) => comparableTask(task)), expired };
  }

  /** Attempts that any node was handed; a node that names another's is refused on both sides alike. */
  #pickClaims(pick: Pick, progress: string): FinishAndClaimParams["progress"] {
    const claim = this.#choose(pick);
    return claim === undefined ? [] : [{ seq: claim.seq, token: claim.token, progress }];
  }

  #finish(finish: Finish): FinishAndClaimParams["finishes"] {
    const claim = this.#choose(finish);
    if (claim === undefined) return [];
    return [{ seq: claim.seq, token: claim.token, settlement: this.#settlement(finish) }];
  }

  #settlement({ to, afterMs }: Finish): Settlement {
    if (to === "done") return { to, result: { afterMs } };
    if (to === "delayed") return { to, error: "try again", runAt: this.#clock.now() + afterMs };
    return { to, error: `was ${to}` };
  }

  /** The last few claims are the ones most likely to be held. */
  #choose({ pick, held }: Pick): Claim | undefined {
    return choose(held ? this.#claims.slice(-8) : this.#claims, pick);
  }

  async #crash(node: number): Promise<boolean> {
    const name = this.#nodes[node] ?? "";
    const beat = (await this.storage.nodes.list()).find((record) => record.node === name)?.beat ?? -1;
    const died = await this.storage.nodes.markDead({ node: name, beat });
    this.#crashed.push(name);
    await this.#startNode(node);
    return died;
  }

  async #startNode(node: number): Promise<void> {
    const name = `node-${node}-${this.#crashed.length}`;
    this.#nodes[node] = name;
    await this.storage.nodes.register({ node: name });
  }

  /** Removing comes right after, as the engine does it; while the node still holds something it changes nothing. */
  async #rescue(node: string, limit: number) {
    const answer = await this.storage.tasks.rescue({ node, limit });
    await this.storage.nodes.remove({ node });
    return answer;
  }

  /** Slice by slice to the end: which of several tenants' surplus goes first is nobody's promise. */
  async #prune({ retentionMs, rejectedMax, limit }: Extract<Command, { do: "prune" }>): Promise<number> {
    let deleted = 0;
    for (let slices = 0; slices < 10_000; slices += 1) {
      const { tasks, more } = await this.storage.tasks.prune({ retentionMs, rejectedMax, limit });
      deleted += tasks;
      if (!more) return deleted;
    }
    throw new Error("Pruning comes to no end.");
  }

  #claimOf(token: number): number {
    return this.#claims.findIndex((claim) => claim.token === token);
  }

  /** A start is told under the number that is its token. */
  #comparableEvent({ seq, ...event }: StoredEvent) {
    return { ...event, claim: event.type === "task.started" ? this.#claimOf(seq) : null };
  }
}

function comparableTask({ seq: _seq, ...task }: TaskRecord) {
  return task;
}

function choose<T>(items: readonly T[], pick: number): T | undefined {
  return items[pick % Math.max(items.length, 1)];
}
