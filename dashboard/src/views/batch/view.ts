import type { View } from "../view.ts";
import BatchPage from "./batch-page.tsx";

export default {
  routes: [{ path: "/batches/:id", page: BatchPage }],
} satisfies View;
