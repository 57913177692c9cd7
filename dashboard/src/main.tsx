import { createRoot } from "react-dom/client";
import { SessionGate } from "./api/session.tsx";
import { applyTheme } from "./frame/theme.ts";
import { Loadable, LoadableFile } from "./parts/loadable.tsx";
import "./styles/tokens.css";
import "./styles/components.css";
import "./styles/app.css";

// The pages load while the server is asked who the user is.
const loading = import("./pages.tsx");
const signedIn = new LoadableFile(() => loading);

applyTheme();
createRoot(document.getElementById("root") as HTMLElement).render(
  <SessionGate>
    <Loadable file={signedIn} props={{}} />
  </SessionGate>,
);
