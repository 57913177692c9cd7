import type { RotaEvent } from "../../../src/client/index.ts";

/** What tabs of one browser tell each other. */
export type TabMessage =
  /** Who leads? The leader says `beat` and `at`. */
  | { readonly kind: "who"; readonly from: string }
  /** I lead. */
  | { readonly kind: "beat"; readonly from: string }
  /** This tab will lead unless another tab objects. */
  | { readonly kind: "claim"; readonly from: string }
  /** I lead no longer. */
  | { readonly kind: "bye"; readonly from: string }
  /** How far the leader has read, and how the stream is. */
  | {
      readonly kind: "at";
      readonly from: string;
      readonly seq: number | undefined;
      readonly status: FeedStatus;
    }
  /** What happened. */
  | { readonly kind: "events"; readonly from: string; readonly events: readonly RotaEvent[] }
  /** Too much happened to tell each: look again. */
  | { readonly kind: "changed"; readonly from: string; readonly seq: number }
  /** Some events are lost, the user signed out of all tabs, or the key was revoked. */
  | { readonly kind: "gap" | "signed-out" | "refused"; readonly from: string };

export type FeedStatus = "connecting" | "live" | "lost" | "busy";

/** What a `BroadcastChannel` is to us. */
export interface Channel {
  post(message: TabMessage): void;
  /** Returns what undoes it. */
  listen(listener: (message: TabMessage) => void): () => void;
  close(): void;
}

/** The name contains the key and the path: a tab of one tenant must never show the events of another. */
export function openChannel(name: string): Channel {
  const channel = new BroadcastChannel(name);
  return {
    post: (message) => channel.postMessage(message),
    listen(listener) {
      const heard = ({ data }: MessageEvent<TabMessage>) => listener(data);
      channel.addEventListener("message", heard);
      return () => channel.removeEventListener("message", heard);
    },
    close: () => channel.close(),
  };
}
