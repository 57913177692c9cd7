import type { Task } from "../../../../src/client/index.ts";
import { useSession } from "../../api/session.tsx";
import { Button } from "../../parts/button.tsx";
import { formatCount } from "../../parts/format.ts";
import { StateGlyph } from "../../parts/state.tsx";
import { Relative } from "../../parts/time.tsx";
import { useAction } from "../../parts/use-action.ts";
import { useQuery } from "../../queries/use-query.ts";
import { DELIVERY_SHOWN, hostOf } from "../webhooks/delivery-text.ts";

/** The webhook deliveries of a task. */
export function Deliveries({ task }: { readonly task: Task }) {
  const { client, may } = useSession();
  const { data } = useQuery({
    queryKey: ["deliveries", task.taskId],
    queryFn: ({ signal }) => client.webhooks.deliveries({ taskId: task.taskId }, { signal }),
    enabled: task.callbackUrl !== undefined && may("read"),
    meta: { live: (event) => event.taskId === task.taskId },
  });
  const { mutate } = useAction((id: string) => client.webhooks.resend(id), {
    said: () => "Sent again",
    changes: ["deliveries"],
  });
  const deliveries = data?.deliveries ?? [];
  if (deliveries.length === 0) return null;
  return (
    <section className="cell rule" id="deliveries">
      <div className="cell-head">
        <h2>Webhook deliveries</h2>
        <span className="count">{formatCount(deliveries.length)}</span>
      </div>
      <div className="scroll-x" tabIndex={0} role="region" aria-label="Webhook deliveries">
        <table className="table">
          <thead>
            <tr>
              <th>State</th>
              <th>To</th>
              <th>Response</th>
              <th className="num">Tries</th>
              <th>Last try</th>
              <th>Next</th>
              <th>
                <span className="vh">Actions</span>
              </th>
            </tr>
          </thead>
          <tbody>
            {deliveries.map((delivery) => {
              const [glyph, word] = DELIVERY_SHOWN[delivery.status];
              return (
                <tr key={delivery.deliveryId}>
                  <td>
                    <span className="state">
                      <StateGlyph state={glyph} />
                      {word}
                    </span>
                  </td>
                  <td className="mono">{hostOf(delivery.url)}</td>
                  <td className="cut answer" title={delivery.error}>
                    {delivery.responseStatus ?? delivery.error ?? "–"}
                  </td>
                  <td className="num">{delivery.tries}</td>
                  <td>{delivery.lastTryAt === undefined ? "–" : <Relative at={delivery.lastTryAt} />}</td>
                  <td>{delivery.nextTryAt === undefined ? "–" : <Relative at={delivery.nextTryAt} />}</td>
                  <td className="num">
                    {may("operate") && delivery.status !== "pending" && (
                      <Button className="btn-quiet" onClick={() => mutate(delivery.deliveryId)}>
                        Send again
                      </Button>
                    )}
                  </td>
                </tr>
              );
            })}
          </tbody>
        </table>
      </div>
    </section>
  );
}
