export const WORKER_LANGUAGES = ["TypeScript", "Python", "sh"] as const;
export type WorkerLanguage = (typeof WORKER_LANGUAGES)[number];

interface SnippetOptions {
  readonly url: string;
  readonly hasKey: boolean;
  readonly agentId: string;
}

/** A worker to paste. It contains no key: the user adds their own. */
export function workerSnippet(language: WorkerLanguage, options: SnippetOptions): string {
  const { url, hasKey } = options;
  const agent = JSON.stringify(options.agentId);
  switch (language) {
    case "TypeScript":
      return `import { RotaWorker } from "rota/client";

const worker = new RotaWorker({
  url: "${url}",${hasKey ? "\n  key: process.env.ROTA_KEY," : ""}
  slots: 4,
  agents: {
    ${agent}: async (task) => task.message?.toUpperCase(),
  },
});
await worker.run();`;
    case "Python":
      return `# pip install ./clients/python
import${hasKey ? " os, rota\n\nworker" : " rota\n\nworker"} = rota.Worker(url="${url}"${hasKey ? ', key=os.environ["ROTA_KEY"]' : ""}, slots=4)


@worker.agent(${agent})
def handle(task, context):
    return task["message"].upper()


worker.run()`;
    case "sh":
      return `# The text of each task is the input of the program, and what it prints the result.
${hasKey ? "export ROTA_KEY=rota_…\n" : ""}rota worker --url ${url} --agent ${quoted(options.agentId)} --slots 4 -- tr a-z A-Z`;
  }
}

/** As one word of a shell. */
function quoted(text: string): string {
  return /^[\w.:-]+$/.test(text) ? text : `'${text.replaceAll("'", `'\\''`)}'`;
}
