import type { View } from "../view.ts";
import EventsPage from "./events-page.tsx";

export default {
  routes: [{ path: "/events", page: EventsPage }],
  nav: { group: "Records", order: 80, label: "Events", icon: "events", path: "/events", key: "e" },
  needs: "read",
} satisfies View;
