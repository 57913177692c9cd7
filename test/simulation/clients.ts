import type { StoppedTasks } from "../../src/interface/sessions.ts";
import type { SubmitInput } from "../../src/model/submit-input.ts";
import type { Task } from "../../src/model/task.ts";
import { isTerminal, type TerminalState } from "../../src/model/task-state.ts";
import { Client } from "./client.ts";
import { SESSIONS } from "./settings.ts";
import { BEGAN_AT, type World } from "./world.ts";

const QUICK = { backoffMs: 20, backoffMultiplier: 2, maxBackoffMs: 300, jitter: 0.5 };
const OVERLAPS = ["skip", "queue", "allow", "replace"] as const;
const CATCH_UPS = ["one", "all", "none"] as const;
const SCHEDULES_MAX = 2;

export function startClients(world: World): Client[] {
  return [
    new Submitter(world, "one"),
    new Submitter(world, "another"),
    new Batcher(world, "batcher"),
    new Meddler(world, "meddler"),
    new Planner(world, "planner"),
    ...Object.keys(SESSIONS).map((key) => new Talker(world, key)),
  ];
}

/** Submits tasks of all kinds one by one, each until it knows that it was accepted. */
class Submitter extends Client {
  protected step(): void {
    const marker = this.ledger.marker("submit");
    const input = { ...this.#task(marker), metadata: { marker }, idempotencyKey: marker };
    this.askUntilAnswered(
      `submit ${marker}`,
      (rota) => rota.tasks.submit(input),
      ({ taskId }) => this.note({ what: "task", taskId, marker }),
    );
  }

  #task(marker: string): SubmitInput {
    const timeout = this.chance.between(500, 4_000);
    const soon = (mostMs: number) =>
      new Date(BEGAN_AT + this.world.agenda.now + this.chance.between(10, mostMs)).toISOString();
    const retryPolicy = { ...QUICK, maxRetries: this.chance.between(0, 6) };
    const worker = { agentId: "worker", timeout };
    const helper = { agentId: "helper", timeout };
    switch (
      this.chance.weighted({
        instruction: 6,
        payload: 3,
        message: 2,
        delayed: 2,
        deadline: 2,
        critical: 2,
        preemptible: 4,
        dependant: 4,
        said: 1,
      })
    ) {
      case "instruction":
        return { ...worker, instruction: marker, retryPolicy };
      case "payload":
        return { ...helper, payload: { marker } };
      case "message":
        return { ...worker, message: marker };
      case "delayed":
        return { ...worker, payload: marker, runAt: soon(20_000) };
      case "deadline":
        return { ...helper, instruction: marker, deadline: soon(6_000), retryPolicy };
      case "critical":
        return { ...helper, payload: marker, priority: "critical" };
      case "preemptible":
        return { ...helper, instruction: marker, priority: "low", preemptible: true, retryPolicy };
      case "dependant":
        return { ...worker, payload: marker, dependsOn: this.#some(), retryPolicy };
      case "said":
        return { agentId: "talker", message: marker, timeout, sessionKey: "in-order" };
    }
  }

  /** One or two of the tasks that were accepted lately. */
  #some(): string[] {
    const latest = this.ledger.accepted.slice(-20);
    if (latest.length === 0) return [];
    return [...new Set([this.chance.pick(latest), this.chance.pick(latest)])];
  }
}

/** Hands in batches whose tasks depend on each other, and cancels one now and then. */
class Batcher extends Client {
  protected step(): void {
    if (!this.chance.oneIn(3)) return;
    const parallelism = this.chance.between(1, 3);
    const tasks = Array.from({ length: this.chance.between(2, 6) }, (_, index) =>
      this.#task(index, parallelism),
    );
    this.ask(
      "submit a batch",
      (rota) => rota.tasks.submitBatch({ agentId: "helper", parallelism, tasks }),
      ({ batchId, tasks: accepted }) => {
        for (const [index, { taskId, state }] of accepted.entries()) {
          const marker = tasks[index]?.metadata.marker ?? "";
          if (state !== "rejected") this.note({ what: "task", taskId, marker });
        }
        if (this.chance.oneIn(5))
          this.ask(
            "cancel a batch",
            (rota) => rota.tasks.cancelBatch(batchId),
            () => {},
          );
      },
    );
  }

  #task(index: number, parallelism: number) {
    const marker = this.ledger.marker("batch");
    const before = index === 0 || this.chance.oneIn(3) ? [] : [`task-${this.chance.between(0, index - 1)}`];
    return {
      key: `task-${index}`,
      instruction: marker,
      timeout: 3_000,
      retryPolicy: { ...QUICK, maxRetries: 3 },
      metadata: { marker, parallelism },
      ...(before.length === 0 ? {} : { dependsOn: before }),
    };
  }
}

/** Looks at tasks that others submitted, waits for some, cancels some, and brings some back that did not end well. */
class Meddler extends Client {
  protected step(): void {
    const { accepted } = this.ledger;
    if (accepted.length === 0) return;
    const taskId = this.chance.pick(this.chance.oneIn(3) ? accepted : accepted.slice(-15));
    switch (this.chance.weighted({ look: 3, wait: 3, cancel: 3, retry: 4, clear: 0.2 })) {
      case "look":
        return this.#look(taskId, () => {});
      case "wait":
        return this.ask(
          `wait for ${taskId}`,
          (rota) => rota.tasks.wait(taskId, { timeoutMs: 10_000 }),
          (task) => this.#noteEnd(task),
        );
      case "cancel":
        return this.ask(
          `cancel ${taskId}`,
          (rota) => rota.tasks.cancel(taskId),
          () => this.note({ what: "cancelled", taskId }),
        );
      case "retry":
        return this.#look(taskId, (task) => this.#retry(task));
      case "clear":
        return this.ask(
          "clear a lane",
          (rota) => rota.lanes.clear("tasks"),
          () => {},
        );
    }
  }

  #look(taskId: string, then: (task: Task) => void): void {
    this.ask(
      `look at ${taskId}`,
      (rota) => rota.tasks.get(taskId),
      (task) => {
        this.#noteEnd(task);
        then(task);
      },
    );
  }

  #noteEnd({ taskId, state, result }: Task): void {
    if (isTerminal(state))
      this.note({ what: "ended", taskId, state: state as TerminalState, result });
  }

  /** One that depends on others would wait for them, and they might never be retried. */
  #retry({ taskId, state, dependsOn }: Task): void {
    if (dependsOn !== undefined || !["failed", "cancelled"].includes(state)) return;
    // Counted before it is asked for: it may be carried out although nobody is told.
    this.ledger.retriesAsked.push(taskId);
    this.ask(
      `retry ${taskId}`,
      (rota) => rota.tasks.retry(taskId),
      () => this.note({ what: "retried", taskId }),
    );
  }
}

/** Makes schedules that are due every second, and asks for what is due. */
class Planner extends Client {
  #made = 0;
  readonly #ids: number[] = [];

  protected step(): void {
    const [id] = this.chance.shuffle(this.#ids);
    if (id !== undefined && this.chance.oneIn(20))
      this.ask(
        "run what is due",
        (rota) => rota.schedules.run(id, { mode: "due" }),
        () => {},
      );
    if (this.#made >= SCHEDULES_MAX || !this.chance.oneIn(6)) return;
    this.#made += 1;
    const input = {
      schedule: { kind: "every", everyMs: 1_000 },
      message: "tick",
      agent: "ticker",
      overlap: this.chance.pick(OVERLAPS),
      catch_up: this.chance.pick(CATCH_UPS),
      timeout: 3_000,
      retry: { max_retries: 1, base_delay_ms: 100, max_delay_ms: 200 },
    } as const;
    this.ask(
      "make a schedule",
      (rota) => rota.schedules.create(input),
      ({ scheduled_task: { id: scheduleId } }) => {
        this.#ids.push(scheduleId);
        this.note({ what: "scheduled", scheduleId });
      },
    );
  }
}

/** Talks in one session: one message after the other, and now and then a word to stop. */
class Talker extends Client {
  readonly #sessionKey: string;

  constructor(world: World, sessionKey: string) {
    super(world, sessionKey);
    this.#sessionKey = sessionKey;
  }

  protected step(): void {
    if (!this.chance.oneIn(3)) return;
    const key = this.#sessionKey;
    const stopped = (answer: Partial<StoppedTasks>) => this.#stopped(answer);
    switch (this.chance.weighted({ say: 24, interrupt: 2, stop: 1, stopall: 1, reset: 1 })) {
      case "stop":
        return this.ask("/stop", (rota) => rota.sessions.send(key, { message: "/stop" }), stopped);
      case "stopall":
        return this.ask("/stopall", (rota) => rota.sessions.stopAll(key), stopped);
      case "reset":
        return this.ask("reset a session", (rota) => rota.sessions.reset(key), stopped);
      case "interrupt":
        return this.#say({ mode: "interrupt" });
      case "say":
        return this.#say({});
    }
  }

  #say(mode: { mode?: "interrupt" }): void {
    const sessionKey = this.#sessionKey;
    const text = this.ledger.marker(sessionKey);
    this.ask(
      `say ${text}`,
      (rota) => rota.sessions.send(sessionKey, { message: text, agentId: "talker", ...mode }),
      ({ taskId = "" }) => this.note({ what: "message", taskId, sessionKey, text }),
    );
  }

  #stopped({ stopped = [], cancelled = [] }: Partial<StoppedTasks>): void {
    for (const taskId of [...stopped, ...cancelled]) this.note({ what: "cancelled", taskId });
  }
}
