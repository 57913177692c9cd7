import { Client } from "./client.ts";

/** Looks at what became of callbacks, and asks for some to be made once more. */
export class Resender extends Client {
  protected readonly pauseMs = 1_200;

  protected async step(): Promise<void> {
    const status = this.chance.pick(["delivered", "failed"]);
    const answered = await this.ask(`/v1/webhooks/deliveries?status=${status}&limit=20`);
    if (answered?.status !== 200 || answered.body.count === 0) return;
    const { deliveryId } = this.chance.pick<{ deliveryId: string }>(answered.body.deliveries);
    const after = this.receivers.now;
    // Counted before the request: the server may carry it out although the client gets no response.
    this.ledger.resendsAsked.push(deliveryId);
    const resent = await this.ask(`/v1/webhooks/deliveries/${deliveryId}/resend`, {});
    if (resent?.status === 202) this.note({ what: "resent", deliveryId, after });
  }
}
