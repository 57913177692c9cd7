import type { DoctorOptions, DoctorReport } from "../interface/doctor.ts";
import type { NotificationsOptions } from "../interface/notifications.ts";
import type { EventPage, EventPageFilter, EventsOptions, Health, RotaApi } from "../interface/rota.ts";
import type { WaitingReasons } from "../interface/waiting.ts";
import type { RotaEvent } from "../model/event.ts";
import type { StatsSeriesQuery } from "../model/input/stats-series-input.ts";
import type { Me } from "../model/me.ts";
import type { Notification } from "../model/notification.ts";
import type { SchedulerStats } from "../model/scheduler-stats.ts";
import type { StatsSeries } from "../model/stats-series.ts";
import { HttpAgents } from "./agents.ts";
import { HttpAudit } from "./audit.ts";
import { HttpBulks } from "./bulks.ts";
import type { CallOptions } from "./call-options.ts";
import { Connection } from "./connection.ts";
import { askDoctor } from "./doctor.ts";
import { EventStream } from "./event-stream.ts";
import { eventFeed, notificationFeed } from "./feeds.ts";
import { HttpKeys } from "./keys.ts";
import { HttpLanes } from "./lanes.ts";
import { HttpNodes } from "./nodes.ts";
import { HttpRuns } from "./runs.ts";
import { HttpSchedules } from "./schedules.ts";
import { HttpSessions } from "./sessions.ts";
import { checkOptions, type RotaClientOptions } from "./settings.ts";
import { HttpTasks } from "./tasks.ts";
import { HttpTenants } from "./tenants.ts";
import { timeText } from "./time-text.ts";
import { HttpWebhooks } from "./webhooks.ts";
import { HttpWorkers } from "./workers.ts";
import { HttpWrits } from "./writs.ts";

/**
 * A Rota server over HTTP, with the same methods as in the process itself, for Node and browsers.
 *
 * @example
 * const rota = new RotaClient({ url: "http://127.0.0.1:7682" });
 * const { taskId } = await rota.tasks.submit({ message: "hello" });
 * const task = await rota.tasks.wait(taskId);
 */
export class RotaClient implements RotaApi {
  readonly tasks: HttpTasks;
  readonly sessions: HttpSessions;
  readonly schedules: HttpSchedules;
  readonly runs: HttpRuns;
  readonly writs: HttpWrits;
  readonly lanes: HttpLanes;
  readonly agents: HttpAgents;
  readonly webhooks: HttpWebhooks;
  readonly workers: HttpWorkers;
  readonly nodes: HttpNodes;
  readonly tenants: HttpTenants;
  readonly keys: HttpKeys;
  readonly audit: HttpAudit;
  readonly bulks: HttpBulks;
  readonly #connection: Connection;

  constructor(options: RotaClientOptions) {
    this.#connection = new Connection(checkOptions(options));
    this.tasks = new HttpTasks(this.#connection);
    this.sessions = new HttpSessions(this.#connection, this.tasks);
    this.schedules = new HttpSchedules(this.#connection);
    this.runs = new HttpRuns(this.#connection);
    this.writs = new HttpWrits(this.#connection);
    this.lanes = new HttpLanes(this.#connection);
    this.agents = new HttpAgents(this.#connection);
    this.webhooks = new HttpWebhooks(this.#connection);
    this.workers = new HttpWorkers(this.#connection);
    this.nodes = new HttpNodes(this.#connection);
    this.tenants = new HttpTenants(this.#connection);
    this.keys = new HttpKeys(this.#connection);
    this.audit = new HttpAudit(this.#connection);
    this.bulks = new HttpBulks(this.#connection);
  }

  /** The address of the server. */
  get url(): string {
    return this.#connection.settings.url;
  }

  /**
   * Events in order, over any number of connections. Throws if the first connection fails, or if the server refuses. Ends with
   * its signal, or when the loop over it is left.
   */
  events(options: EventsOptions = {}): EventStream<RotaEvent> {
    return new EventStream(this.#connection, eventFeed(options), options);
  }

  eventPage(filter: EventPageFilter = {}, { signal }: CallOptions = {}): Promise<EventPage> {
    return this.#connection.ask({ path: "/v1/events", query: { ...filter }, signal });
  }

  /** Notifications, with the same reconnects as `events`. */
  notifications(options: NotificationsOptions = {}): EventStream<Notification> {
    return new EventStream(this.#connection, notificationFeed, options);
  }

  /** If the handler throws, the error is logged and later events still reach it. An error that ends the stream is logged too. */
  onEvent(handler: (event: RotaEvent) => void | Promise<void>): () => void {
    const { log } = this.#connection.settings;
    const stream = this.events();
    const failed = (event: RotaEvent, error: unknown) =>
      log.error({ error, event: event.type, taskId: event.taskId }, "an event handler failed");
    const handleAll = async () => {
      for await (const event of stream) {
        try {
          const answer = handler(event);
          if (answer instanceof Promise) answer.catch((error) => failed(event, error));
        } catch (error) {
          failed(event, error);
        }
      }
    };
    handleAll().catch((error) => log.error({ error }, "the event stream ended; handlers get no more events"));
    return () => void stream.return();
  }

  stats({ signal }: CallOptions = {}): Promise<SchedulerStats> {
    return this.#connection.ask({ path: "/v1/scheduler/stats", signal });
  }

  waiting({ signal }: CallOptions = {}): Promise<WaitingReasons> {
    return this.#connection.ask({ path: "/v1/waiting", signal });
  }

  statsSeries(query: StatsSeriesQuery = {}, { signal }: CallOptions = {}): Promise<StatsSeries> {
    const { metrics, by, from, to, step } = query;
    const text = { metrics: metrics === undefined ? undefined : String(metrics), by, step };
    const range = { from: timeText(from), to: timeText(to) };
    return this.#connection.ask({ path: "/v1/stats/series", query: { ...text, ...range }, signal });
  }

  doctor(options: DoctorOptions = {}): Promise<DoctorReport> {
    return askDoctor(this.#connection, options);
  }

  /** The role and tenant of the client's key, and the node that responds. */
  me({ signal }: CallOptions = {}): Promise<Me> {
    return this.#connection.ask({ path: "/v1/me", signal });
  }

  /** The configuration of the node that responds, with `…` in place of every secret. For the role `admin`. */
  config({ signal }: CallOptions = {}): Promise<Readonly<Record<string, unknown>>> {
    return this.#connection.ask({ path: "/v1/config", signal });
  }

  health({ signal }: CallOptions = {}): Promise<Health> {
    return this.#connection.ask({ path: "/health", signal });
  }

  metrics({ signal }: CallOptions = {}): Promise<string> {
    return this.#connection.ask({ path: "/metrics", text: true, signal });
  }
}
