import type { View } from "../view.ts";

export default {
  routes: [{ path: "/tasks/:id", load: () => import("./task-page.tsx") }],
} satisfies View;
