import { useSession } from "../../api/session.tsx";
import { Link } from "../../parts/router.tsx";
import { Snippet } from "../../parts/snippet.tsx";
import { WORKER_LANGUAGES, workerSnippet } from "./worker-snippets.ts";

/** Shown while there is no worker: what one is, and how to start it. */
export function StartWorker({ agentId = "shout" }: { readonly agentId?: string | undefined }) {
  const { client, key, may, me } = useSession();
  return (
    <div className="first">
      <div>
        <h2>No worker is connected</h2>
        <p>
          A worker is a program on any machine that asks this server for tasks of its agents and runs them. It
          needs no open port. Start one, and it appears here at once.
        </p>
        {key !== undefined && (
          <p>
            It needs a key of the role <span className="mono">worker</span> that names its agents
            {may("manage") && me.features.includes("keys") ? (
              <>
                : create it under{" "}
                <Link className="link" href="/keys">
                  Keys
                </Link>
                .
              </>
            ) : (
              "; an administrator can create it."
            )}
          </p>
        )}
      </div>
      <Snippet
        title="Start a worker"
        languages={WORKER_LANGUAGES}
        textIn={(language) =>
          workerSnippet(language, { agentId, url: client.url, hasKey: key !== undefined })
        }
      />
    </div>
  );
}
