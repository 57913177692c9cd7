import { useState } from "react";
import { useSession } from "../../api/session.tsx";
import { Button } from "../../parts/button.tsx";
import { Snippet, Switch } from "../../parts/snippet.tsx";
import { useAction } from "../../parts/use-action.ts";
import { NewTask } from "../tasks/new-task.tsx";
import { runSample } from "./sample.ts";
import { LANGUAGES, SUBMISSIONS, type Submission, snippetOf } from "./snippets.ts";

/** Shown until the first task is submitted: what to do first. */
export function FirstRun() {
  const { client, me, key, may } = useSession();
  const [isNew, setNew] = useState(false);
  const [what, setWhat] = useState<Submission>("Task");
  const sample = useAction(() => runSample(client, me.features.includes("schedules")), {
    said: () => "The sample runs",
    changes: ["schedules"],
  });
  return (
    <div className="first">
      <div>
        <h2>Nothing has run yet</h2>
        <p>
          Rota is ready at {client.url.replace(/^https?:\/\//, "")}. Submit a task{" "}
          {may("submit") && "here, or "}from a program: it appears on this page at once.
          {may("operate") &&
            " A sample shows some small tasks, a batch, a session and a schedule. It costs no tokens, and can be removed with one click."}
        </p>
        <div className="btn-group">
          {may("operate") && (
            <Button
              icon="play"
              className="btn-main btn-lg"
              disabled={sample.isPending}
              onClick={() => sample.mutate(undefined)}
            >
              Run a sample
            </Button>
          )}
          {may("submit") && (
            <Button icon="plus" className="btn-lg" onClick={() => setNew(true)}>
              Submit a task
            </Button>
          )}
        </div>
      </div>
      <Snippet
        title="From a program"
        languages={LANGUAGES}
        textIn={(language) => snippetOf(what, language, { url: client.url, hasKey: key !== undefined })}
      >
        <Switch name="what" legend="What" choices={SUBMISSIONS} value={what} onChange={setWhat} />
      </Snippet>
      {isNew && <NewTask onClose={() => setNew(false)} />}
    </div>
  );
}
