import { execFile } from "node:child_process";
import { join } from "node:path";
import { promisify } from "node:util";
import { expect, test } from "vitest";

const JUMPING_CLOCK = join(import.meta.dirname, "jumping-clock.ts");

/** Prints by how many minutes the clock is wrong, before and after each of three signals. */
const SCRIPT = `
  const { once } = require("node:events");
  const began = performance.timeOrigin;
  const minutes = (at) => Math.round((at - began) / 60_000);
  const look = () => [minutes(Date.now()), minutes(new Date().getTime()), minutes(Date.parse(Date()))];
  const looks = [look()];
  // A process that waits for nothing but signals ends.
  const stay = setTimeout(() => {}, 60_000);
  (async () => {
    for (let jump = 0; jump < 3; jump += 1) {
      process.kill(process.pid, "SIGWINCH");
      await once(process, "SIGWINCH");
      looks.push(look());
    }
    console.log(JSON.stringify([...looks, new Date(0) instanceof Date]));
    clearTimeout(stay);
  })();
`;

test("a node whose clock is made to jump believes it, however it asks for the time", async () => {
  const args = ["--import", JUMPING_CLOCK, "-e", SCRIPT];
  const { stdout } = await promisify(execFile)(process.execPath, args);
  expect(JSON.parse(stdout)).toEqual([[0, 0, 0], [10, 10, 10], [-10, -10, -10], [0, 0, 0], true]);
});
