import type { RotaEvent } from "../../../src/client/index.ts";

/** Messages between the tabs of one browser. */
export type TabMessage =
  /** Asks which tab leads. The leader replies with `beat` and `at`. */
  | { readonly kind: "who"; readonly from: string }
  /** This tab leads. */
  | { readonly kind: "beat"; readonly from: string }
  /** This tab will lead unless another tab objects. */
  | { readonly kind: "claim"; readonly from: string }
  /** This tab no longer leads. */
  | { readonly kind: "bye"; readonly from: string }
  /** The position of the leader in the stream, and the status of the stream. */
  | {
      readonly kind: "at";
      readonly from: string;
      readonly seq: number | undefined;
      readonly status: FeedStatus;
    }
  /** New events. */
  | { readonly kind: "events"; readonly from: string; readonly events: readonly RotaEvent[] }
  /** Too many events to send each: the tabs refetch. */
  | { readonly kind: "changed"; readonly from: string; readonly seq: number }
  /** Some events are lost, the user signed out of all tabs, or the key was revoked. */
  | { readonly kind: "gap" | "signed-out" | "refused"; readonly from: string };

export type FeedStatus = "connecting" | "live" | "lost" | "busy";

/** The part of `BroadcastChannel` that is used. */
export interface Channel {
  post(message: TabMessage): void;
  /** Returns the function that removes the listener. */
  listen(listener: (message: TabMessage) => void): () => void;
  close(): void;
}

/** The name contains the key and the path: a tab of one tenant must never show the events of another. */
export function openChannel(name: string): Channel {
  const channel = new BroadcastChannel(name);
  return {
    post: (message) => channel.postMessage(message),
    listen(listener) {
      const onMessage = ({ data }: MessageEvent<TabMessage>) => listener(data);
      channel.addEventListener("message", onMessage);
      return () => channel.removeEventListener("message", onMessage);
    },
    close: () => channel.close(),
  };
}
