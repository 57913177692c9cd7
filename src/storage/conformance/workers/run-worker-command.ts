import type { FinishedAttempt, WorkerPoll } from "../../storage.ts";
import type { Finish, WorkerCommand } from "../commands.ts";
import { choose, type Side } from "../side.ts";
import { newWorker } from "./workers.ts";

const nameOf = (worker: number) => `wrk_${worker}`;

/** Runs a command of a worker and returns the result in comparable form. */
export async function runWorkerCommand(
  side: Side,
  command: WorkerCommand,
  toFinish: (finish: Finish) => readonly FinishedAttempt[],
): Promise<unknown> {
  const { workers } = side.storage;
  const id = nameOf(command.worker);
  switch (command.do) {
    case "registerWorker": {
      const { tenant, agents, slots } = command;
      // The other tenants have workers of the same instance: they are other workers.
      const name = `${id}-${tenant}`;
      const registered = await workers.register(
        newWorker({ id: tenant === "acme" ? id : name, tenant, instance: id, name, agents, slots }),
      );
      return registered;
    }
    case "exchange":
      return exchange(side, command, toFinish);
    case "nameAttempts": {
      const hashes = [...new Set(command.picks.flatMap((pick) => choose(side.hashes, pick) ?? []))];
      const attempts = hashes.map((hash) => ({ hash }));
      const { dropped } = await workers.name({ worker: id, attempts, all: command.all });
      return dropped.map(({ token }) => side.claimOf(token));
    }
    case "loseWorker": {
      const { workers: watched } = await workers.watch();
      const beat = watched.find(({ worker }) => worker === id)?.beat ?? -1;
      return workers.markLost({ worker: id, beat });
    }
    case "renewWorker":
      return workers.renew({ signs: [{ worker: id, polls: true }] });
    case "drainWorker":
      return workers.drain({ tenant: "acme", id });
    case "takeBack": {
      const { limit, counted, maxLost } = command;
      return workers.takeBack({
        worker: id,
        limit,
        counted,
        ...(maxLost === null ? {} : { maxLost }),
        error: "worker lost",
      });
    }
    case "preemptForWorkers":
      return workers.preempt({ limit: command.limit });
    case "removeWorker":
      return workers.remove({ tenant: "acme", id });
  }
}

async function exchange(
  side: Side,
  command: Extract<WorkerCommand, { do: "exchange" }>,
  toFinish: (finish: Finish) => readonly FinishedAttempt[],
) {
  side.exchanges += 1;
  const worker = nameOf(command.worker);
  const polls: WorkerPoll[] = command.polls.map(({ worker, claim, max }, n) => ({
    worker: nameOf(worker),
    claim: `claim-${claim}`,
    max,
    agents: null,
    tokens: Array.from({ length: max }, (_, i) => ({
      hash: `hash-${side.exchanges}-${n}-${i}`,
      nonce: `nonce-${side.exchanges}-${n}-${i}`,
    })),
  }));
  const { finished, claimed, expired } = await side.storage.workers.exchange({
    finishes: command.finishes.flatMap(toFinish).map((finish) => ({ ...finish, worker, recorded: true })),
    progress: command.progress.flatMap((pick) => {
      const claim = side.chooseClaim(pick);
      return claim === undefined ? [] : [{ ...claim, worker, progress: "half way" }];
    }),
    polls,
  });
  const ended = finished.map(({ token, state }) => ({ claim: side.claimOf(token), state }));
  const known = new Set(side.claims.map(({ token }) => token));
  for (const { token, nonce, task } of claimed
    .flatMap((tasks) => tasks ?? [])
    .toSorted((a, b) => a.token - b.token)) {
    if (known.has(token)) continue;
    side.claims.push({ seq: task.seq, token });
    side.hashes.push(nonce.replace("nonce", "hash"));
  }
  return {
    ended,
    claimed: claimed.map(
      (tasks) => tasks?.map(({ task, token }) => [side.claimOf(token), side.comparableTask(task)]) ?? null,
    ),
    expired,
  };
}
