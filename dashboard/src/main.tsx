import { createRoot } from "react-dom/client";
import { SessionGate } from "./api/session.tsx";
import { applyTheme } from "./frame/theme.ts";
import { loadable } from "./parts/loadable.tsx";
import "./styles/tokens.css";
import "./styles/components.css";
import "./styles/app.css";

// What is behind the sign-in is loaded while the server is asked who this is.
const loading = import("./pages.tsx");
const SignedIn = loadable(() => loading);

applyTheme();
createRoot(document.getElementById("root") as HTMLElement).render(
  <SessionGate>
    <SignedIn />
  </SessionGate>,
);
