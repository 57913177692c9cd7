import type { Command } from "commander";

export interface CommandEntry {
  readonly name: string;
  /** The arguments after the name, as the help shows them. */
  readonly usage: string;
  readonly description: string;
  readonly group: string;
  /** Loads the command with its options. Only the called command is loaded: the server alone would take a second. */
  readonly load: () => Promise<Command>;
}

const RUN = "Server:";
const WORK = "Tasks and sessions:";
const SCHEDULE = "Schedules:";
const LOOK = "Monitoring:";
const ADMIN = "Tenants and keys:";

/** Every command, in the order of the help. */
export const COMMANDS: readonly CommandEntry[] = [
  {
    name: "serve",
    usage: "[options]",
    description: "Run the scheduler and its HTTP server until SIGTERM or Ctrl-C.",
    group: RUN,
    load: async () => (await import("./commands/serve.ts")).serveCommand(),
  },
  {
    name: "demo",
    usage: "[options]",
    description: "Run a server in memory with demo agents, and watch its queue live.",
    group: RUN,
    load: async () => (await import("./commands/demo.ts")).demoCommand(),
  },
  {
    name: "worker",
    usage: "--agent <id> [options] -- <command...>",
    description: "Run tasks of a server with a program on this machine, until SIGTERM or Ctrl-C.",
    group: RUN,
    load: async () => (await import("./commands/worker.ts")).workerCommand(),
  },
  {
    name: "worker-conformance",
    usage: "[options] -- <command...>",
    description:
      "Check that a worker in any language keeps the worker protocol, with a test server of its own.",
    group: RUN,
    load: async () => (await import("./commands/worker-conformance.ts")).workerConformanceCommand(),
  },
  {
    name: "mcp",
    usage: "[options]",
    description: "Serve Rota's tools to an MCP client, on stdin and stdout.",
    group: RUN,
    load: async () => (await import("./commands/mcp.ts")).mcpCommand(),
  },
  {
    name: "config",
    usage: "<command>",
    description: "Check or show the configuration of this directory.",
    group: RUN,
    load: async () => (await import("./commands/config.ts")).configCommand(),
  },
  {
    name: "submit",
    usage: "[options]",
    description: "Submit a task: one of --message, --instruction, --action and --payload, or a --file.",
    group: WORK,
    load: async () => (await import("./commands/submit.ts")).submitCommand(),
  },
  {
    name: "task",
    usage: "<id>",
    description: "Show one task: its input, its result, and every attempt.",
    group: WORK,
    load: async () => (await import("./commands/task.ts")).taskCommand(),
  },
  {
    name: "tasks",
    usage: "[options]",
    description: "List tasks, newest first; or cancel, retry or delete many.",
    group: WORK,
    load: async () => (await import("./commands/tasks.ts")).tasksCommand(),
  },
  {
    name: "cancel",
    usage: "<id...>",
    description: "Cancel tasks, waiting or running.",
    group: WORK,
    load: async () => (await import("./commands/cancel.ts")).cancelCommand(),
  },
  {
    name: "retry",
    usage: "<id...>",
    description: "Put failed or cancelled tasks back into the queue.",
    group: WORK,
    load: async () => (await import("./commands/retry.ts")).retryCommand(),
  },
  {
    name: "bulk",
    usage: "<id>",
    description: "Show the progress of a bulk action, or abort it.",
    group: WORK,
    load: async () => (await import("./commands/bulk.ts")).bulkCommand(),
  },
  {
    name: "say",
    usage: "<key> <text...>",
    description: "Send a message to a session, a conversation with any key as its name.",
    group: WORK,
    load: async () => (await import("./commands/say.ts")).sayCommand(),
  },
  {
    name: "stop",
    usage: "<key>",
    description: "Stop the running task of a session.",
    group: WORK,
    load: async () => (await import("./commands/stop.ts")).stopCommand(),
  },
  {
    name: "schedule",
    usage: "<text...>",
    description: "Send a message to an agent at a time, or repeatedly.",
    group: SCHEDULE,
    load: async () => (await import("./commands/schedule.ts")).scheduleCommand(),
  },
  {
    name: "schedules",
    usage: "[command]",
    description: "List schedules, or show, change, pause, resume, run, delete and preview them.",
    group: SCHEDULE,
    load: async () => (await import("./commands/schedules.ts")).schedulesCommand(),
  },
  {
    name: "runs",
    usage: "[command]",
    description: "List the runs of schedules, or show one run.",
    group: SCHEDULE,
    load: async () => (await import("./commands/runs.ts")).runsCommand(),
  },
  {
    name: "watch",
    usage: "[options]",
    description: "Watch events live.",
    group: LOOK,
    load: async () => (await import("./commands/watch.ts")).watchCommand(),
  },
  {
    name: "waiting",
    usage: "",
    description: "Show why tasks wait: each reason with the number of tasks that it holds.",
    group: LOOK,
    load: async () => (await import("./commands/waiting.ts")).waitingCommand(),
  },
  {
    name: "events",
    usage: "[options]",
    description: "List stored events.",
    group: LOOK,
    load: async () => (await import("./commands/events.ts")).eventsCommand(),
  },
  {
    name: "stats",
    usage: "",
    description: "Show how many tasks wait, run and are done; with --series, over time.",
    group: LOOK,
    load: async () => (await import("./commands/stats.ts")).statsCommand(),
  },
  {
    name: "sessions",
    usage: "[key]",
    description: "List sessions, or show, change or delete one.",
    group: LOOK,
    load: async () => (await import("./commands/sessions.ts")).sessionsCommand(),
  },
  {
    name: "lanes",
    usage: "[command]",
    description: "List lanes, set the concurrency of one, or cancel its waiting tasks.",
    group: LOOK,
    load: async () => (await import("./commands/lanes.ts")).lanesCommand(),
  },
  {
    name: "agents",
    usage: "[command]",
    description: "List agents, or show, create, change and delete them.",
    group: LOOK,
    load: async () => (await import("./commands/agents.ts")).agentsCommand(),
  },
  {
    name: "nodes",
    usage: "",
    description: "List the processes that run tasks, with their slots and running tasks.",
    group: LOOK,
    load: async () => (await import("./commands/nodes.ts")).nodesCommand(),
  },
  {
    name: "workers",
    usage: "[command]",
    description: "List the workers that pull tasks, drain them or remove them.",
    group: LOOK,
    load: async () => (await import("./commands/workers.ts")).workersCommand(),
  },
  {
    name: "deliveries",
    usage: "[command]",
    description: "List webhook deliveries, show one, or send them again.",
    group: LOOK,
    load: async () => (await import("./commands/deliveries.ts")).deliveriesCommand(),
  },
  {
    name: "me",
    usage: "",
    description: "Show the role and tenant of the API key, and the responding node.",
    group: LOOK,
    load: async () => (await import("./commands/me.ts")).meCommand(),
  },
  {
    name: "doctor",
    usage: "",
    description:
      "Check the stored data: due times without a run, wrong counters, changed audit entries, clocks that disagree.",
    group: LOOK,
    load: async () => (await import("./commands/doctor.ts")).doctorCommand(),
  },
  {
    name: "tenants",
    usage: "[command]",
    description:
      "List tenants, or show, create, change, disable, enable and delete them, or rotate their webhook secrets.",
    group: ADMIN,
    load: async () => (await import("./commands/tenants.ts")).tenantsCommand(),
  },
  {
    name: "keys",
    usage: "[command]",
    description: "List, create or delete API keys.",
    group: ADMIN,
    load: async () => (await import("./commands/keys.ts")).keysCommand(),
  },
];
