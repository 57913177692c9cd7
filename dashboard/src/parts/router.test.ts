import { expect, test } from "vitest";
import { matchPath } from "./router.tsx";

test.each([
  ["/", "/", {}],
  ["/tasks", "/tasks", {}],
  ["/tasks", "/tasks/", {}],
  ["/tasks", "/tasks/tsk_1", undefined],
  ["/tasks/:id", "/tasks/tsk_1", { id: "tsk_1" }],
  ["/tasks/:id", "/tasks/", undefined],
  ["/tasks/:id", "/batches/bat_1", undefined],
  ["/schedules/:id", "/schedules/a%2Fb", { id: "a/b" }],
  ["/schedules/:id", "/schedules/%", { id: "%" }],
])("%s and %s are %o", (pattern, path, params) => {
  expect(matchPath(pattern, path)).toEqual(params);
});
