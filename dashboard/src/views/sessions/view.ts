import type { View } from "../view.ts";
import SessionPage from "./session-page.tsx";
import SessionsPage from "./sessions-page.tsx";

export default {
  routes: [
    { path: "/sessions", page: SessionsPage },
    // A key may contain any character. Proxies would change some of them in a path.
    { path: "/session", page: SessionPage },
  ],
  nav: {
    group: "Work",
    order: 30,
    label: "Sessions",
    icon: "sessions",
    path: "/sessions",
    key: "s",
    creates: { label: "New session", needs: "submit" },
  },
} satisfies View;
