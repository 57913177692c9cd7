import type { Received, TestAttempt } from "./attempts.ts";
import { type Bench, must } from "./bench.ts";
import { TEST_HEARTBEAT_MS } from "./test-server.ts";

export interface Behaviour {
  readonly number: number;
  /** What the worker does. */
  readonly title: string;
  /** Throws `Misbehaviour` with what it did instead. */
  readonly check: (bench: Bench) => Promise<void>;
}

/** How far apart heartbeats may be. The interval, and what a busy machine may add. */
const HEARTBEAT_GAP_MS = TEST_HEARTBEAT_MS + 2_500;
/** Pauses are measured from the response that asked for them: timers may fire a moment early. */
const EARLY_MS = 100;

/** Every behaviour that a worker is held to, as docs/worker-conformance.md lists them. */
export const BEHAVIOURS: readonly Behaviour[] = [
  {
    number: 1,
    title:
      "registers with its agents, slots and an `instanceId` of its own, and sends its key with each request",
    check: async (bench) => {
      const { instanceId, agents } = await bench.start();
      must(instanceId !== undefined, "it registered without an `instanceId`");
      const another = await bench.startAnother();
      must(another.instanceId !== instanceId, "two processes registered with one `instanceId`");
      must(agents.length > 0, "it registered without agents");
      await bench.work("echo hello");
      // Long enough for heartbeats.
      await bench.work("sleep 1500");
      noFaults(bench);
    },
  },
  {
    number: 2,
    title: "runs the handler and finishes with its result, ignores unknown fields, and compares no clocks",
    check: async (bench) => {
      // The test server adds fields of later versions to each response, and its `now` is years off.
      await bench.start();
      const { path, lines } = bench.file();
      const [first, second] = [await bench.work("echo hello world"), await bench.work(`append ${path}`)];
      must(first.outcome === "done", `a handler that returned was finished as \`${first.outcome}\``);
      must(first.result === "hello world", `the result was ${shown(first.result)}, not "hello world"`);
      must(second.outcome === "done" && lines() === 1, `the handler ran ${lines()} times for one attempt`);
      noFaults(bench);
    },
  },
  {
    number: 3,
    title: "repeats a claim whose response was lost with the same `claimId`, and runs each attempt once",
    check: async (bench) => {
      await bench.start();
      const { path, lines } = bench.file();
      bench.server.disturb("claim", { kind: "lose-answer" }, { times: 2 });
      const attempt = bench.server.submit(`append ${path}`);
      await bench.untilFinished(attempt);
      const ids = bench.server.requests("claim").map(({ body }) => body["claimId"] as string);
      must(
        ids.some((id, index) => ids.indexOf(id) !== index),
        "it claimed with another `claimId` after a lost answer",
      );
      await bench.work("echo again");
      must(lines() === 1, `the handler ran ${lines()} times for one attempt`);
    },
  },
  {
    number: 4,
    title: "claims no more than its free slots, keeps at most two claims open, and fills all its slots",
    check: async (bench) => {
      const { slots } = await bench.start();
      const attempts = Array.from({ length: slots + 2 }, () => bench.server.submit("sleep 1500"));
      const held = () => attempts.filter(({ state }) => state === "held").length;
      await bench.until(`ran ${slots} attempts at once`, () => held() === slots);
      for (const attempt of attempts) await bench.untilFinished(attempt, 30_000);
      const { overAsked, openClaimsMax } = bench.server;
      must(overAsked <= 0, `it claimed ${overAsked} attempts more than it had free slots`);
      must(openClaimsMax <= 2, `it had ${openClaimsMax} claims open at once`);
    },
  },
  {
    number: 5,
    title: "heartbeats in time, with every attempt that it holds, while handlers are busy",
    check: async (bench) => {
      const { slots } = await bench.start();
      const attempts = Array.from({ length: Math.min(slots, 3) }, () => bench.server.submit("sleep 5000"));
      for (const attempt of attempts) await bench.untilHeld(attempt);
      const began = performance.now();
      for (const attempt of attempts) await bench.untilFinished(attempt, 20_000);
      for (const { token } of attempts) {
        const ended = finishOf(bench, token)?.at ?? performance.now();
        const beats = beatsOf(bench, token).filter((at) => at <= ended);
        must(beats.length > 0, "it sent no heartbeat for an attempt");
        const times = [began, ...beats, ended];
        const longest = Math.max(...times.map((at, index) => at - (times[index - 1] ?? at)));
        must(
          longest <= HEARTBEAT_GAP_MS,
          `${Math.round(longest)} ms passed without a heartbeat for an attempt; it was asked for one every ${TEST_HEARTBEAT_MS} ms`,
        );
      }
      noFaults(bench);
    },
  },
  {
    number: 6,
    title:
      "stops an attempt that a heartbeat's response cancels, does not finish it as done, and uses the slot again",
    check: async (bench) => {
      const { slots } = await bench.start();
      const { path, lines } = bench.file();
      const attempts = Array.from({ length: slots }, () => bench.server.submit(`sleep 4000 ${path}`));
      const began = performance.now();
      for (const attempt of attempts) await bench.untilHeld(attempt);
      for (const attempt of attempts) attempt.cancel = "cancelled";
      await bench.until("sent a heartbeat for the cancelled attempts", () =>
        attempts.every(({ state }) => state === "ended"),
      );
      await bench.work("echo next");
      await bench.pause(Math.max(began + 4_500 - performance.now(), 0));
      must(lines() === 0, "the handler went on after the cancel");
      must(
        attempts.every((attempt) => !wasFinished(bench, attempt, "done")),
        "it finished a cancelled attempt as done",
      );
    },
  },
  {
    number: 7,
    title: "repeats a finish whose response was lost, with the same outcome, until a response comes",
    check: async (bench) => {
      await bench.start();
      bench.server.disturb("finish", { kind: "lose-answer" }, { times: 2 });
      const { path, lines } = bench.file();
      const attempt = bench.server.submit(`append ${path}`);
      await bench.until("repeated the finish", () => attempt.finishes >= 3);
      await bench.pause(1_000);
      must(attempt.finishes === 3, `it sent a finish ${attempt.finishes - 3} more times after its answer`);
      must(!attempt.isChanged, "it repeated a finish with another outcome");
      must(lines() === 1, `the handler ran ${lines()} times for one attempt`);
      await bench.work("echo next");
    },
  },
  {
    number: 8,
    title: "accepts `recorded: false`, sends that finish no more, and goes on",
    check: async (bench) => {
      await bench.start();
      const attempt = bench.server.submit("sleep 300");
      await bench.untilHeld(attempt);
      // The attempt ends for the server only, as after a lease that ran out.
      attempt.state = "ended";
      await bench.until(
        "stopped or finished the attempt",
        () => attempt.finishes > 0 || beatsOf(bench, attempt.token).length > 0,
      );
      await bench.pause(1_000);
      must(attempt.finishes <= 1, `it sent a finish ${attempt.finishes} times although it was answered`);
      await bench.work("echo next");
    },
  },
  {
    number: 9,
    title: "sends an error in place of a result that is refused with 413",
    check: async (bench) => {
      await bench.start();
      const attempt = bench.server.submit("big 1500000");
      await bench.untilFinished(attempt, 20_000);
      must(attempt.outcome === "failed", `it finished the attempt as \`${attempt.outcome}\``);
      must((attempt.error ?? "") !== "", "it finished the attempt without an `error`");
      await bench.work("echo next");
    },
  },
  {
    number: 10,
    title: "finishes as failed, retryable and with the error, when the handler fails",
    check: async (bench) => {
      await bench.start();
      const attempt = await bench.work("fail out of paper");
      must(attempt.outcome === "failed", `it finished the attempt as \`${attempt.outcome}\``);
      must(
        attempt.error?.includes("out of paper") === true,
        `its \`error\` was ${shown(attempt.error)}, without the words of the handler`,
      );
      must(attempt.retryable !== false, "it said `retryable: false` of an ordinary failure");
      await bench.work("echo next");
      noFaults(bench);
    },
  },
  {
    number: 11,
    title:
      "registers again with the same `instanceId` after 404 `unknown_worker`, and finishes what it holds",
    check: async (bench) => {
      const { instanceId } = await bench.start();
      const attempt = bench.server.submit("sleep 1500");
      await bench.untilHeld(attempt);
      bench.server.forgetWorkers();
      await bench.until("registered again", () => bench.server.registrations.size > 0);
      must(bench.registration.instanceId === instanceId, "it registered with another `instanceId`");
      await bench.untilFinished(attempt);
      await bench.work("echo next");
    },
  },
  {
    number: 12,
    title: "waits as `Retry-After` and `retryInMs` say, before it claims again",
    check: async (bench) => {
      await bench.start();
      const refuse = { kind: "refuse", status: 429, code: "rate_limited", retryAfterSec: 2 } as const;
      bench.server.disturb("claim", refuse);
      await pauseAfterNextClaim(bench, 2_000);
      bench.server.disturb("claim", { ...refuse, status: 503, code: "storage_unavailable" });
      await pauseAfterNextClaim(bench, 2_000);
      bench.server.disturb("claim", { kind: "answer", answer: { attempts: [], retryInMs: 1_500 } });
      await pauseAfterNextClaim(bench, 1_500);
      await bench.work("echo next");
    },
  },
  {
    number: 13,
    title: "backs off while requests fail, comes back after a restart of the server, and loses no finish",
    check: async (bench) => {
      await bench.start();
      const attempt = bench.server.submit("sleep 500");
      await bench.untilHeld(attempt);
      const { port } = bench.server;
      await bench.server.close();
      await bench.pause(1_500);
      await bench.server.listen(port);
      await bench.untilFinished(attempt, 20_000);

      const before = bench.server.received.length;
      const refuse = { kind: "refuse", status: 500, code: "internal_error" } as const;
      bench.server.disturb("claim", refuse, { times: 1_000 });
      await bench.pause(2_500);
      const claims = bench.server.received.slice(before).filter(({ call }) => call === "claim").length;
      must(claims <= 15, `it claimed ${claims} times in 2.5 seconds while every claim failed`);
    },
  },
  {
    number: 14,
    title: "claims again after `retryInMs` when a draining server responds `drain` with it, and stays",
    check: async (bench) => {
      await bench.start();
      bench.server.disturb("claim", {
        kind: "answer",
        answer: { attempts: [], drain: true, retryInMs: 1_000 },
      });
      await pauseAfterNextClaim(bench, 1_000);
      await bench.work("echo next");
    },
  },
  {
    number: 15,
    title: "is drained: claims no more, finishes what runs, deletes itself and exits with 0",
    check: async (bench) => {
      await bench.start();
      const attempt = bench.server.submit("sleep 3000");
      await untilNamed(bench, attempt);
      bench.server.drain();
      await endsWell(bench, attempt);
    },
  },
  {
    number: 16,
    title: "does the same after SIGTERM, and heartbeats until its handlers have ended",
    check: async (bench) => {
      await bench.start();
      const attempt = bench.server.submit("sleep 4000");
      await untilNamed(bench, attempt);
      const stoppedAt = performance.now();
      bench.worker.terminate();
      await endsWell(bench, attempt);
      must(
        beatsOf(bench, attempt.token).some((at) => at > stoppedAt + 1_000),
        "it sent no heartbeat after SIGTERM",
      );
    },
  },
  {
    number: 17,
    title: "exits with 0 soon after SIGTERM when it holds nothing, though its claim is open",
    check: async (bench) => {
      await bench.start();
      await bench.work("echo hello");
      await bench.until("claimed again", () => bench.server.requests("claim").length > 1);
      bench.worker.terminate();
      await bench.untilExit(5_000);
      must(bench.server.deleted === 1, "it did not delete itself");
    },
  },
];

async function endsWell(bench: Bench, attempt: TestAttempt): Promise<void> {
  // One claim may have been on its way.
  await bench.pause(1_000);
  const waiting = bench.server.submit("echo too late");
  const claims = bench.server.requests("claim").length;
  await bench.untilExit(20_000);
  must(bench.server.requests("claim").length === claims, "it claimed again");
  must(waiting.state === "queued", "it took a task although it was to end");
  must(attempt.outcome === "done", `it left the running attempt ${attempt.outcome ?? "unfinished"}`);
  must(bench.server.deleted === 1, "it did not delete itself");
}

/** Waits until the worker certainly runs the attempt: a heartbeat has named it. */
async function untilNamed(bench: Bench, { token }: TestAttempt): Promise<void> {
  await bench.until("sent a heartbeat for its attempt", () => beatsOf(bench, token).length > 0);
}

/** Waits for the next answered claim, and checks that the one after it comes no sooner. */
async function pauseAfterNextClaim(bench: Bench, pauseMs: number): Promise<void> {
  const before = bench.server.requests("claim").length;
  const claims = () => bench.server.requests("claim").slice(before);
  await bench.until("claimed again", () => claims().length >= 2, pauseMs + 10_000);
  const [first, second] = claims();
  const waited = (second?.at ?? 0) - (first?.at ?? 0);
  must(
    waited >= pauseMs - EARLY_MS,
    `it claimed again after ${Math.round(waited)} ms, and was asked to wait ${pauseMs} ms`,
  );
}

/** When heartbeats named this attempt. */
function beatsOf(bench: Bench, token: string): number[] {
  return bench.server
    .requests("heartbeat")
    .filter((request) => entriesFor(token, request).length > 0)
    .map(({ at }) => at);
}

/** The first finish of this attempt. */
function finishOf(bench: Bench, token: string): Received | undefined {
  return bench.server.requests("finish").find((request) => entriesFor(token, request).length > 0);
}

function wasFinished(bench: Bench, { token }: TestAttempt, outcome: string): boolean {
  return bench.server
    .requests("finish")
    .flatMap((request) => entriesFor(token, request))
    .some((finish) => finish["outcome"] === outcome);
}

/** What a request says of an attempt. */
function entriesFor(token: string, { body }: Received): Record<string, unknown>[] {
  const entries: unknown = body["attempts"];
  return Array.isArray(entries) ? entries.filter(({ attemptToken }) => attemptToken === token) : [];
}

function noFaults({ server }: Bench): void {
  must(server.faults.length === 0, `it sent what Rota refuses: ${[...new Set(server.faults)].join("; ")}`);
}

function shown(value: unknown): string {
  return (JSON.stringify(value) ?? String(value)).slice(0, 100);
}
