/** What a program can submit first, with the request and the call of the client. */
const CALLS = {
  Task: {
    path: "/v1/tasks",
    body: { instruction: "Say hello to the team" },
    call: (body: string) =>
      `const { taskId } = await rota.tasks.submit(${body});\nconsole.log((await rota.tasks.wait(taskId)).result);`,
  },
  Batch: {
    path: "/v1/tasks/batch",
    body: {
      tasks: [
        { key: "read", instruction: "Read the page" },
        { instruction: "Sum it up", dependsOn: ["read"] },
      ],
    },
    call: (body: string) =>
      `const { batchId } = await rota.tasks.submitBatch(${body});\nconsole.log(batchId);`,
  },
  Session: {
    path: "/v1/sessions/chat:anna/messages",
    body: { message: "Where is my parcel?" },
    call: (body: string) =>
      `const { result } = await rota.sessions.ask("chat:anna", ${body});\nconsole.log(result);`,
  },
  Schedule: {
    path: "/v1/schedules",
    body: { schedule: "every weekday at 09:00", message: "Sum up the news" },
    call: (body: string) =>
      `const { scheduled_task } = await rota.schedules.create(${body});\nconsole.log(scheduled_task.id);`,
  },
} as const;

export type Submission = keyof typeof CALLS;
export const SUBMISSIONS = Object.keys(CALLS) as readonly Submission[];

export const LANGUAGES = ["curl", "TypeScript", "Python"] as const;
export type Language = (typeof LANGUAGES)[number];

interface SnippetOptions {
  readonly url: string;
  readonly hasKey: boolean;
}

/** A program to paste. It contains no key: the user adds their own. */
export function snippetOf(what: Submission, language: Language, { url, hasKey }: SnippetOptions): string {
  const { path, body, call } = CALLS[what];
  const json = JSON.stringify(body, null, what === "Batch" ? 2 : 0);
  switch (language) {
    case "curl":
      return [
        `curl -s '${url}${path}'`,
        ...(hasKey ? ['-H "authorization: Bearer $ROTA_KEY"'] : []),
        "-H 'content-type: application/json'",
        `-d '${json}'`,
      ].join(" \\\n  ");
    case "TypeScript":
      return `import { RotaClient } from "rota/client";

const rota = new RotaClient({ url: "${url}"${hasKey ? ", key: process.env.ROTA_KEY" : ""} });
${call(json)}`;
    case "Python":
      // Without a package that would have to be installed first.
      return `import json${hasKey ? ", os" : ""}, urllib.request

request = urllib.request.Request(
    "${url}${path}",
    headers={"Content-Type": "application/json"${hasKey ? ', "Authorization": "Bearer " + os.environ["ROTA_KEY"]' : ""}},
    data=json.dumps(${json}).encode(),
)
print(json.load(urllib.request.urlopen(request)))`;
  }
}
