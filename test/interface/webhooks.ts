import { describe, expect, test } from "vitest";
import { until } from "../../src/testing/signals.ts";
import { serve } from "../support/http-server.ts";
import { errorOf, type Open } from "./opened.ts";

export function describeWebhooks(open: Open): void {
  describe("webhooks", () => {
    /** A task whose callback went to a receiver with this response. */
    async function delivered(status: number) {
      const bodies: unknown[] = [];
      const url = await serve((_request, response, body) => {
        bodies.push(JSON.parse(body));
        response.writeHead(status).end();
      });
      const opened = await open({ options: { webhooks: { allow: ["127.0.0.1"] } } });
      const { taskId } = await opened.api.tasks.submit({ message: "hello", callbackUrl: `${url}/hook` });
      await until(() => bodies.length === 1, "the callback");
      await until(async () => {
        const { deliveries } = await opened.api.webhooks.deliveries({ taskId });
        return deliveries[0]?.responseStatus !== undefined;
      }, "the delivery to be noted");
      const { deliveries } = await opened.api.webhooks.deliveries({ taskId });
      return { ...opened, bodies, taskId, url, delivery: deliveries[0] };
    }

    test("are listed and shown, with their outcome", async () => {
      const { api, rota, delivery, taskId, url, bodies } = await delivered(204);
      expect(delivery).toMatchObject({
        taskId,
        url: `${url}/hook`,
        state: "done",
        status: "delivered",
        tries: 1,
      });
      expect(await api.webhooks.get(delivery?.deliveryId as string)).toEqual(delivery);
      expect(bodies).toEqual([{ tenantId: "default", ...(await rota.tasks.get(taskId)) }]);
      expect(await api.webhooks.deliveries({ status: "failed" })).toEqual({
        deliveries: [],
        count: 0,
        nextCursor: null,
      });
    });

    test("are sent once more when asked to", async () => {
      const { api, delivery, bodies } = await delivered(200);
      expect(await api.webhooks.resend(delivery?.deliveryId as string)).toMatchObject({ status: "pending" });
      await until(() => bodies.length === 2, "the callback once more");
      expect(bodies[1]).toEqual(bodies[0]);
    });

    test("that do not exist, or wait already, are not", async () => {
      const { api, delivery } = await delivered(500);
      expect(delivery).toMatchObject({ status: "pending", responseStatus: 500 });
      expect(await errorOf(api.webhooks.resend(delivery?.deliveryId as string))).toMatchObject({
        code: "conflict",
      });
      for (const id of ["dlv_unknown", "", ".."]) {
        expect(await errorOf(api.webhooks.get(id))).toMatchObject({ code: "not_found" });
        expect(await errorOf(api.webhooks.resend(id))).toMatchObject({ code: "not_found" });
      }
    });

    test.each([
      [{ status: "lost" }, "status"],
      [{ limit: 0 }, "limit"],
      [{ task: "x" }, "task"],
    ])("with %j are refused", async (filter, field) => {
      const { api } = await open();
      expect(await errorOf(api.webhooks.deliveries(filter as never))).toMatchObject({
        code: "invalid_field",
        details: { field },
      });
    });
  });
}
