import { expect, test } from "vitest";
import { deliveryId, seqOfDelivery } from "./delivery-id.ts";

test("names the task and the number, and the number is found again", () => {
  const id = deliveryId({ taskId: "tsk_0192f0c1a", seq: 42 });
  expect(id).toBe("whd_0192f0c1a_42");
  expect(seqOfDelivery(id)).toBe(42);
});

test.each([
  "",
  "whd_",
  "whd_x",
  "whd_x_",
  "whd_x_0",
  "whd_x_042",
  "whd_x_-1",
  "whd_x_1e3",
  "tsk_x_1",
  "whd_x_99999999999999999",
  7,
  null,
])("%j names no delivery", (id) => {
  expect(seqOfDelivery(id)).toBeNull();
});
