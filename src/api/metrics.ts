import { z } from "zod";
import { errorAnswers } from "./error.ts";

const EXAMPLE = `# HELP rota_lane_waiting_tasks Tasks that wait, over all nodes.
# TYPE rota_lane_waiting_tasks gauge
rota_lane_waiting_tasks{lane="tasks"} 5
`;

export const getMetrics = {
  operationId: "getMetrics",
  tags: ["node"],
  summary: "Get the metrics for Prometheus",
  description:
    "Counters and durations of this process, and the queue over all nodes, in the text format of Prometheus. While the database is unreachable, only those of this process.",
  response: {
    200: {
      description: "The text format of Prometheus.",
      content: { "text/plain": { schema: z.string().meta({ examples: [EXAMPLE] }) } },
    },
    ...errorAnswers(),
  },
};
