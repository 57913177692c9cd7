import { createContext, type ReactNode, useContext, useEffect, useRef, useState } from "react";
import { ConnectionError, type CreatedKey, type Me, RotaClient } from "../../../src/client/index.ts";
import { Button } from "../parts/button.tsx";
import { type BasePaths, currentBasePaths } from "./base-paths.ts";
import { hasCode, sentenceOf } from "./errors.ts";
import { parseExactly } from "./exact-json.ts";
import { KeyStore } from "./key-store.ts";
import { isAllowed, type Permission } from "./permissions.ts";
import { SignIn } from "./sign-in.tsx";

/** The signed-in user, and the only client of the server. */
export interface Session {
  readonly client: RotaClient;
  readonly key: string | undefined;
  readonly me: Me;
  readonly basePaths: BasePaths;
  /** Whether the role allows it. Buttons that a role may not use are hidden. */
  readonly may: (permission: Permission) => boolean;
  readonly signOut: () => void;
  /** Goes on with the first key, which this tab has created: from then on the server asks for one. */
  readonly adopt: (created: CreatedKey) => void;
  /** The key that this tab has adopted, once: the user has not seen it yet. */
  readonly takeAdopted: () => CreatedKey | undefined;
  /** Called when the server no longer accepts the key. */
  readonly refused: () => void;
  /** Reads `me` again: after a restart another node, or another version, responds. */
  readonly refresh: () => Promise<void>;
}

const SessionContext = createContext<Session | undefined>(undefined);

export function useSession(): Session {
  const session = useContext(SessionContext);
  if (session === undefined) throw new Error("there is no session outside of SessionGate");
  return session;
}

type State =
  | { readonly kind: "checking" }
  | { readonly kind: "out"; readonly fault: string | undefined }
  | { readonly kind: "failed"; readonly error: unknown; readonly retry: () => void }
  | { readonly kind: "in"; readonly session: Session };

const UNKNOWN_KEY = "This key is unknown or was deleted.";
const FIRST_KEY = "A key was created, so this server asks for one now.";
const WORKER_KEY = "This key is for a worker, which cannot read anything. Sign in with another key.";
const REVOKED = "Your key was deleted or has expired. Sign in again to continue.";

/** Shows the sign-in page to unknown users. The address stays, so that the user returns to the same page. */
export function SessionGate({ children }: { readonly children: ReactNode }) {
  const [basePaths] = useState(currentBasePaths);
  const [store] = useState(() => new KeyStore(basePaths.basePath));
  const [state, setState] = useState<State>({ kind: "checking" });
  const adopted = useRef<CreatedKey>(undefined);

  const open = async (key: string | undefined, remember: boolean | undefined): Promise<void> => {
    try {
      const client = new RotaClient({
        url: location.origin + basePaths.basePath,
        via: "dashboard",
        parse: parseExactly,
        retry: { tries: 1, withinMs: 3_000 },
        ...(key === undefined ? {} : { key }),
      });
      const me = await client.me();
      if (me.role === "worker") {
        if (remember === undefined) store.clear();
        setState({ kind: "out", fault: WORKER_KEY });
        return;
      }
      if (key !== undefined && remember !== undefined) store.set(key, { remember });
      const leave = (fault: string | undefined) => {
        if (store.get() === key) store.clear();
        // A request of the time before another key was adopted says nothing about that key.
        setState((state) =>
          state.kind === "in" && state.session.client !== client ? state : { kind: "out", fault },
        );
      };
      const session: Session = {
        client,
        key,
        me,
        basePaths,
        may: (permission) => isAllowed(me.role, permission),
        signOut: () => leave(undefined),
        adopt: (created) => {
          adopted.current = created;
          void open(created.key, false);
        },
        takeAdopted: () => {
          const created = adopted.current;
          adopted.current = undefined;
          return created;
        },
        refused: () => leave(key === undefined ? FIRST_KEY : REVOKED),
        refresh: async () => {
          const now = await client.me();
          setState((state) =>
            state.kind === "in" && state.session.client === client
              ? { kind: "in", session: { ...state.session, me: now } }
              : state,
          );
        },
      };
      setState({ kind: "in", session });
    } catch (error) {
      if (hasCode(error, "unauthorized") || hasCode(error, "invalid_field")) {
        if (remember === undefined) store.clear();
        setState({ kind: "out", fault: key === undefined ? undefined : UNKNOWN_KEY });
      } else {
        // A key that was typed is tried again.
        setState({ kind: "failed", error, retry: () => void open(key, remember) });
      }
    }
  };

  // biome-ignore lint/correctness/useExhaustiveDependencies: once, with the key that is kept.
  useEffect(() => void open(store.get(), undefined), []);

  switch (state.kind) {
    case "checking":
      return null;
    case "in":
      return (
        // With another key nothing that was read before is right any more.
        <SessionContext key={state.session.key} value={state.session}>
          {children}
        </SessionContext>
      );
    case "out":
      return <SignIn fault={state.fault} onKey={(key, remember) => open(key, remember)} />;
    case "failed":
      return <Failed error={state.error} onRetry={state.retry} />;
  }
}

function Failed({ error, onRetry }: { readonly error: unknown; readonly onRetry: () => void }) {
  return (
    <main className="empty">
      <h1>{error instanceof ConnectionError ? "Rota does not respond" : "You cannot be signed in now"}</h1>
      <p>{sentenceOf(error)}</p>
      <Button icon="retry" onClick={onRetry}>
        Try again
      </Button>
    </main>
  );
}
