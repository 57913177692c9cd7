import { expect, test } from "vitest";
import { Terminal } from "../../../test/support/terminal.ts";
import { Screen } from "./screen.ts";

function open() {
  const terminal = new Terminal();
  const keys: string[] = [];
  let resizes = 0;
  const screen = new Screen({
    ...terminal.streams,
    onKey: (key) => keys.push(key),
    onResize: () => {
      resizes += 1;
    },
  });
  return { screen, terminal, keys, resizes: () => resizes };
}

test("takes the terminal over, draws in place, and leaves it as it was", () => {
  const { screen, terminal } = open();
  const listeners = process.listenerCount("exit");
  screen.open();
  expect([terminal.isRaw, terminal.isFlowing]).toEqual([true, true]);
  screen.draw(["one", "two"]);
  expect(terminal.written).toContain("\x1b[Hone\x1b[K\r\ntwo\x1b[K\x1b[J");
  screen.close();
  screen.close();
  expect(terminal.written.startsWith("\x1b[?1049h")).toBe(true);
  expect(terminal.written.split("\x1b[?1049l")).toHaveLength(2);
  expect(terminal.written.endsWith("\x1b[?25h\x1b[?1049l")).toBe(true);
  expect([terminal.isRaw, terminal.isFlowing]).toEqual([false, false]);
  expect(process.listenerCount("exit")).toBe(listeners);
});

test("hands on keys, one by one, and changes of size, until it is closed", () => {
  const { screen, terminal, keys, resizes } = open();
  screen.open();
  terminal.emit("data", Buffer.from("aq"));
  terminal.columns = 100;
  terminal.emit("resize");
  expect([keys, resizes(), screen.size]).toEqual([["a", "q"], 1, { width: 100, height: 24 }]);
  screen.close();
  terminal.emit("data", Buffer.from("b"));
  terminal.emit("resize");
  expect([keys, resizes()]).toEqual([["a", "q"], 1]);
});

test("draws nothing once it is closed", () => {
  const { screen, terminal } = open();
  screen.open();
  screen.close();
  const before = terminal.written;
  screen.draw(["late"]);
  expect(terminal.written).toBe(before);
});
