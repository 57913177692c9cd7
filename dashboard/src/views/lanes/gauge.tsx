import type { CSSProperties } from "react";
import type { LaneInfo } from "../../../../src/client/index.ts";

/** The slots of a gauge, the taken ones, and how they are drawn. */
export interface Gauge {
  readonly slots: number;
  readonly className: string;
  /** No node starts a further task of the lane. */
  readonly isFull: boolean;
}

/** With more ticks than this, single ticks are too narrow to see. */
const TICKS_MAX = 60;
const WIDE_TICKS_MAX = 24;

/**
 * The server does not report how many nodes there are. While one node could run all running tasks, the gauge shows its slots.
 * Above that it shows the slots of all nodes together or, without such a limit, as many as are taken.
 */
export function gaugeOf({ running, concurrency, total }: LaneInfo): Gauge {
  const ofOne = total === null ? concurrency : Math.min(concurrency, total);
  const slots = Math.max(running <= ofOne ? ofOne : (total ?? running), running);
  return {
    slots,
    className: slots > TICKS_MAX ? "slots slots-bar" : slots > WIDE_TICKS_MAX ? "slots slots-fine" : "slots",
    isFull: total !== null && running >= total,
  };
}

/** The slots of a lane, with the taken ones filled. A lane with a concurrency of 0 has none. */
export function SlotGauge({ lane }: { readonly lane: LaneInfo }) {
  const { slots, className } = gaugeOf(lane);
  const { running } = lane;
  if (slots === 0) return <span />;
  return (
    <span
      className={className}
      style={{ "--r": running, "--n": slots } as CSSProperties}
      role="meter"
      aria-valuemin={0}
      aria-valuemax={slots}
      aria-valuenow={running}
      aria-label={`${running} of ${slots} slots in use`}
    />
  );
}
