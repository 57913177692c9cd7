import { spawn } from "node:child_process";
import { once } from "node:events";
import { expect, onTestFinished, test } from "vitest";
import { shellProgram } from "../../test/support/programs.ts";
import { until } from "../testing/signals.ts";
import { hasMembers } from "./command-members.ts";

/** Starts a program as the leader of a group of its own, which ends with the test. Returns it once it has written something. */
async function startLeader(source: string) {
  const [file = "", ...args] = shellProgram(source);
  const leader = spawn(file, args, { detached: true, stdio: ["ignore", "pipe", "ignore"] });
  const pid = leader.pid as number;
  const ended = once(leader, "exit");
  onTestFinished(async () => {
    leader.kill("SIGKILL");
    await ended;
  });
  const [said] = await once(leader.stdout, "data");
  return { leader, pid, ended, said: Number(said) };
}

test("a group has members as long as any of its processes runs", async () => {
  const { leader, pid, ended, said } = await startLeader("sleep 600 >/dev/null & echo $!; wait");
  expect(hasMembers(pid)).toBe(true);
  leader.kill("SIGKILL");
  await ended;
  expect(hasMembers(pid)).toBe(true);
  process.kill(said, "SIGKILL");
  await until(() => !hasMembers(pid), "the last one to end");
});

test.runIf(process.platform === "linux")("a zombie process is no member", async () => {
  // Whatever the shell becomes does not ask for the child, which leads a group of its own.
  const { said } = await startLeader("setsid sleep 0.1 >/dev/null & echo $!; exec sleep 600");
  await until(() => hasMembers(said), "the child to lead its group");
  await until(() => !hasMembers(said), "the child to end");
  expect(process.kill(-said, 0)).toBe(true);
});
