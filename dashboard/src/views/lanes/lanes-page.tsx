import { useState } from "react";
import type { LaneInfo } from "../../../../src/client/index.ts";
import { useSession } from "../../api/session.tsx";
import { Page } from "../../frame/page.tsx";
import { Button } from "../../parts/button.tsx";
import { formatCount, sayDuration } from "../../parts/format.ts";
import { Read } from "../../parts/read.tsx";
import { Link } from "../../parts/router.tsx";
import { useNow } from "../../parts/time.tsx";
import { useNew } from "../../parts/use-new.ts";
import { useQuery } from "../../queries/use-query.ts";
import { RUNNING, tasksHref, WAITING } from "../tasks/task-filters.ts";
import { ClearLane } from "./clear-lane.tsx";
import { gaugeOf, SlotGauge } from "./gauge.tsx";
import { LaneSettings } from "./lane-settings.tsx";
import "./lanes.css";
import { NewLane } from "./new-lane.tsx";
import { Spark } from "./spark.tsx";
import { useLaneHistory } from "./use-lane-history.ts";

/** Every lane with its running and waiting tasks, and its concurrency. */
export default function LanesPage() {
  const { client, may } = useSession();
  const query = useQuery({
    queryKey: ["lanes"],
    queryFn: ({ signal }) => client.lanes.list({ signal }),
    meta: { live: (event) => event.type !== "task.progress" },
  });
  const history = useLaneHistory();
  const canAdd = may("administer");
  const [isNew, setNew] = useNew("/lanes", canAdd);
  return (
    <Page
      title="Lanes"
      actions={
        canAdd && (
          <Button icon="plus" onClick={() => setNew(true)}>
            <span>New lane</span>
          </Button>
        )
      }
    >
      <Read query={query} what="The lanes">
        {({ lanes }) =>
          lanes.map((lane) => (
            <Lane key={lane.name} lane={lane} readAt={query.dataUpdatedAt} started={history.get(lane.name)} />
          ))
        }
      </Read>
      {isNew && <NewLane onClose={() => setNew(false)} />}
    </Page>
  );
}

interface LaneProps {
  readonly lane: LaneInfo;
  /** Milliseconds since 1970. */
  readonly readAt: number;
  /** In each minute of the last hour. Undefined: unknown, or none. */
  readonly started: readonly number[] | undefined;
}

function Lane({ lane, readAt, started }: LaneProps) {
  const { may } = useSession();
  const [isClearing, setClearing] = useState(false);
  const { name, running, waiting, oldestWaitMs, concurrency } = lane;
  const { slots, isFull } = gaugeOf(lane);
  return (
    <section className="lane" aria-label={`Lane ${name}`}>
      <div>
        <h2>
          <Link href={tasksHref({ lane: name })}>{name}</Link>
          {isFull && <span className="tag tag-ask">full</span>}
          {concurrency === 0 && <span className="tag">starts no tasks on this node</span>}
        </h2>
        <SlotGauge lane={lane} />
        <div className="lane-nums">
          <Link href={tasksHref({ state: RUNNING, lane: name })}>
            <b>{formatCount(running)}</b> {slots > 0 && `of ${formatCount(slots)} `}running
          </Link>
          <Link href={tasksHref({ state: WAITING, lane: name })}>
            <b>{formatCount(waiting)}</b> waiting
          </Link>
          <span>
            {oldestWaitMs !== null ? (
              <>
                oldest <Waiting ms={oldestWaitMs} readAt={readAt} />
              </>
            ) : (
              waiting > 0 && "none is ready to start"
            )}
          </span>
          <Spark points={started} />
          {may("operate") && waiting > 0 && (
            <Button className="btn-quiet lane-clear" onClick={() => setClearing(true)}>
              Clear<span className="vh"> {name}</span>
            </Button>
          )}
        </div>
      </div>
      <LaneSettings lane={lane} />
      {isClearing && <ClearLane lane={lane} onClose={() => setClearing(false)} />}
    </section>
  );
}

/** The age grows without any event, so it is computed from the time. */
function Waiting({ ms, readAt }: { readonly ms: number; readonly readAt: number }) {
  return sayDuration(ms + Math.max(0, useNow() - readAt));
}
