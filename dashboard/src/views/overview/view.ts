import type { View } from "../view.ts";
import OverviewPage from "./overview-page.tsx";

export default {
  routes: [{ path: "/", page: OverviewPage }],
  nav: { group: "Work", order: 10, label: "Overview", icon: "overview", path: "/", key: "o" },
  needs: "read",
} satisfies View;
