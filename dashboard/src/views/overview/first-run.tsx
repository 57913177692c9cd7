import { useState } from "react";
import { useSession } from "../../api/session.tsx";
import { CopyButton } from "../../parts/copy.tsx";
import { Icon } from "../../parts/icon.tsx";
import { useAction } from "../../parts/use-action.ts";
import { NewTask } from "../tasks/new-task.tsx";
import { runSample } from "./sample.ts";
import { LANGUAGES, type Language, SUBMISSIONS, type Submission, snippetOf } from "./snippets.ts";

/** Shown until the first task is submitted: what to do first. */
export function FirstRun() {
  const { client, me, key, may } = useSession();
  const [isNew, setNew] = useState(false);
  const [what, setWhat] = useState<Submission>("Task");
  const [language, setLanguage] = useState<Language>("curl");
  const sample = useAction(() => runSample(client, me.features.includes("schedules")), {
    said: () => "The sample runs",
    changes: ["schedules"],
  });
  const text = snippetOf(what, language, { url: client.url, hasKey: key !== undefined });
  return (
    <div className="first">
      <div>
        <h2>Nothing has run yet</h2>
        <p>
          Rota is ready at {client.url.replace(/^https?:\/\//, "")}. Submit a task here, or from a program:
          what comes appears on this page at once.
          {may("operate") &&
            " A sample shows some small tasks, a batch, a session and a schedule. It costs no tokens, and can be removed with one click."}
        </p>
        <div className="btn-group">
          {may("operate") && (
            <button
              type="button"
              className="btn btn-main btn-lg"
              disabled={sample.isPending}
              onClick={() => sample.mutate(undefined)}
            >
              <Icon name="play" />
              Run a sample
            </button>
          )}
          {may("submit") && (
            <button type="button" className="btn btn-lg" onClick={() => setNew(true)}>
              <Icon name="plus" />
              Submit a task
            </button>
          )}
        </div>
      </div>
      <div className="snip">
        <div className="cell-head">
          <h2>From a program</h2>
          <Switch name="what" legend="What" choices={SUBMISSIONS} value={what} onChange={setWhat} />
          <Switch
            name="language"
            legend="Language"
            choices={LANGUAGES}
            value={language}
            onChange={setLanguage}
          />
          <CopyButton text={() => text} what={language} />
        </div>
        <div className="well">
          <pre className="code" tabIndex={0} role="region" aria-label={`${what}, ${language}`}>
            {text}
          </pre>
        </div>
      </div>
      {isNew && <NewTask onClose={() => setNew(false)} />}
    </div>
  );
}

interface SwitchProps<Value extends string> {
  readonly name: string;
  readonly legend: string;
  readonly choices: readonly Value[];
  readonly value: Value;
  readonly onChange: (value: Value) => void;
}

function Switch<Value extends string>({ name, legend, choices, value, onChange }: SwitchProps<Value>) {
  return (
    <fieldset className="seg">
      <legend className="vh">{legend}</legend>
      {choices.map((each) => (
        <label key={each}>
          <input type="radio" name={name} checked={each === value} onChange={() => onChange(each)} />
          {each}
        </label>
      ))}
    </fieldset>
  );
}
