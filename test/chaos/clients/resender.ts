import { Client } from "./client.ts";

/** Lists the outcomes of callbacks, and asks Rota to send some of them again. */
export class Resender extends Client {
  protected readonly pauseMs = 1_200;
  #hasResent = false;

  protected override get hasDoneItsPart(): boolean {
    return this.#hasResent;
  }

  protected async step(): Promise<void> {
    const status = this.chance.pick(["delivered", "failed"]);
    const answered = await this.ask(`/v1/webhooks/deliveries?status=${status}&limit=20`);
    if (answered?.status !== 200) return;
    if (answered.body.count === 0) return this.#causeOne();
    const { deliveryId } = this.chance.pick<{ deliveryId: string }>(answered.body.deliveries);
    const after = this.receivers.now;
    // Counted before the request: the server may carry it out although the client gets no response.
    this.ledger.resendsAsked.push(deliveryId);
    const resent = await this.ask(`/v1/webhooks/deliveries/${deliveryId}/resend`, {});
    if (resent?.status !== 202) return;
    this.#hasResent = true;
    this.note({ what: "resent", deliveryId, after });
  }

  /** On a slow machine no other client may have got a task with a callback accepted. */
  async #causeOne(): Promise<void> {
    const marker = this.ledger.marker("resend");
    const answered = await this.ask("/tasks", {
      payload: marker,
      ...this.callbackUrl("callbackUrl", 1),
      metadata: { marker },
      idempotencyKey: marker,
    });
    if (answered?.status === 202) this.note({ what: "task", taskId: answered.body.taskId, marker });
  }
}
