import type { View } from "../view.ts";

export default {
  routes: [{ path: "/batches/:id", load: () => import("./batch-page.tsx") }],
} satisfies View;
