import { useState } from "react";
import { useSession } from "../../api/session.tsx";
import { CopyButton } from "../../parts/copy.tsx";
import { Icon } from "../../parts/icon.tsx";
import { curlOf } from "../task/task-input.ts";
import { NewTask } from "../tasks/new-task.tsx";

const INPUT = { instruction: "Say hello to the team" };

/** Commands to paste, by language. */
function snippetsOf(url: string, hasKey: boolean): Readonly<Record<string, string>> {
  const input = JSON.stringify(INPUT);
  const options = `url: "${url}"${hasKey ? ", key: process.env.ROTA_KEY" : ""}`;
  const headers = hasKey ? ',\n    headers={"Authorization": "Bearer " + os.environ["ROTA_KEY"]}' : "";
  return {
    curl: curlOf(INPUT, { url, hasKey }).replaceAll(/ (?=-[Hd])/g, " \\\n  "),
    TypeScript: `import { RotaClient } from "rota/client";

const rota = new RotaClient({ ${options} });
const { taskId } = await rota.tasks.submit(${input});
console.log((await rota.tasks.wait(taskId)).result);`,
    Python: `import ${hasKey ? "os, " : ""}requests

task = requests.post("${url}/v1/tasks"${headers},
    json=${input}).json()
print(task["taskId"], task["state"])`,
  };
}

/** Shown until the first task is submitted: what to do first. */
export function FirstRun() {
  const { client, key, may } = useSession();
  const [isNew, setNew] = useState(false);
  const [language, setLanguage] = useState("curl");
  const snippets = snippetsOf(client.url, key !== undefined);
  const text = snippets[language] ?? "";
  return (
    <div className="first">
      <div>
        <h2>Nothing has run yet</h2>
        <p>
          Rota is ready at {client.url.replace(/^https?:\/\//, "")}. Submit a task here, or from a program:
          what comes appears on this page at once.
        </p>
        {may("submit") && (
          <button type="button" className="btn btn-main btn-lg" onClick={() => setNew(true)}>
            <Icon name="plus" />
            Submit a task
          </button>
        )}
      </div>
      <div className="snip">
        <div className="cell-head">
          <h2>From a program</h2>
          <fieldset className="seg more">
            <legend className="vh">Language</legend>
            {Object.keys(snippets).map((name) => (
              <label key={name}>
                <input
                  type="radio"
                  name="language"
                  checked={name === language}
                  onChange={() => setLanguage(name)}
                />
                {name}
              </label>
            ))}
          </fieldset>
          <CopyButton text={() => text} what={language} />
        </div>
        <div className="well">
          <pre className="code" tabIndex={0} role="region" aria-label={language}>
            {text}
          </pre>
        </div>
      </div>
      {isNew && <NewTask onClose={() => setNew(false)} />}
    </div>
  );
}
