/** All metrics: the source of the exporter, the reference page, and the names that alert rules and dashboards use. */

interface MetricFacts {
  readonly type: 'counter' | 'gauge' | 'histogram';
  /** The values of each label are bounded: slots on the board, routes of the table, or words of the program. */
  readonly labels: readonly string[];
  readonly unit: string;
  readonly help: string;
  /**
   * How to combine the values of several replicas. `replica`: each has its own; add them up. `same`: each reports the
   * same thing; take the maximum. `leader`: only the leader counts; add them up.
   */
  readonly scope: 'replica' | 'same' | 'leader';
  readonly buckets?: readonly number[];
}

/** Cached answers to long generations. */
const REQUEST_SECONDS = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120, 300, 600, 1800];
/** The buckets that OpenTelemetry recommends for `gen_ai.server.time_to_first_token`, and minutes for long prompts. */
const FIRST_TOKEN_SECONDS = [0.001, 0.005, 0.01, 0.02, 0.04, 0.06, 0.08, 0.1, 0.25, 0.5, 0.75, 1, 2.5, 5, 7.5, 10, 30, 60, 120, 300, 600];
/** OpenTelemetry's for `gen_ai.server.time_per_output_token`. */
const PER_TOKEN_SECONDS = [0.01, 0.025, 0.05, 0.075, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5, 0.75, 1, 2.5];
/** OpenTelemetry's for `gen_ai.client.token.usage`. */
const TOKENS = [1, 4, 16, 64, 256, 1024, 4096, 16_384, 65_536, 262_144, 1_048_576, 4_194_304, 16_777_216, 67_108_864];
/** Large models on a CPU to small ones on a fast GPU. */
const TOKENS_PER_SECOND = [0.5, 1, 2, 5, 10, 20, 35, 50, 75, 100, 150, 200, 300, 500, 1000];
/** A swap that was almost done to the longest parking time. */
const PARKED_SECONDS = [0.01, 0.05, 0.1, 0.5, 1, 2.5, 5, 10, 20, 30, 60, 120, 300, 600];
/** An idle API server to the time limit of a request, as the clients of Kubernetes count. */
const KUBE_SECONDS = [0.005, 0.025, 0.1, 0.25, 0.5, 1, 2, 4, 8, 15, 30];
/** A pass only plans and takes milliseconds, since slow work runs outside it. Seconds already indicate a problem. */
const PASS_SECONDS = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 1, 5];

/** The first 100 callers of a replica, and "others". Amounts of another currency are another series. */
const USED = ['caller', 'slot', 'currency'];

export const METRICS = {
  svc_build_info: gauge(['version', 'runtime'], '1', 'Version and runtime; always 1'),
  svc_captures_active: gauge([], 'captures', 'Captures that record bodies of requests now (`svcctl capture start`)'),
  svc_leads: gauge([], '1', '1 where this replica reconciles, 0 where another one does'),
  svc_limits_shared: gauge(
    [],
    '1',
    'With `SVC_LIMITS_URL`: 1 while this gateway counts callers together with the others, 0 while it does not',
  ),

  svc_source_synced: gauge(
    [],
    '1',
    'With `SVC_GIT_URL`: 1 while the newest commit of the repository is in force and no file differs, else 0 (`svcctl source status`)',
  ),

  svc_slot_state: seenByAll(gauge(['slot', 'state'], '1', '1 for the state the slot is in, 0 for the others')),
  svc_slot_condition: seenByAll(
    gauge(
      ['slot', 'type', 'status'],
      '1',
      '1 for the status ("True", "False", "Unknown") that the condition of the slot has, 0 for the others; also for slots whose text has never been valid',
    ),
  ),
  svc_slot_replicas_desired: seenByAll(
    gauge(['slot'], 'replicas', 'Replicas that the slot should have now, in a cluster: 0 while it is disabled, idle or not asked for'),
  ),
  svc_slot_replicas_present: seenByAll(gauge(['slot'], 'replicas', 'Replicas that exist, in a cluster')),
  svc_slot_replicas_ready: seenByAll(gauge(['slot'], 'replicas', 'Replicas that answer, in a cluster')),
  svc_slot_transitions_total: seenByAll(counter(['slot', 'from', 'to'], 'transitions', 'Transitions between states')),
  svc_drift_total: seenByAll(counter(['slot'], 'findings', 'How often a workload was found changed from outside')),

  svc_inflight: gauge(['slot'], 'requests', 'Requests in flight'),
  svc_request_progress_ratio: gauge(
    ['slot'],
    'ratio',
    'How far the server is with the image that it draws now, from 0 to 1; absent while it reports nothing',
  ),
  svc_parked: gauge(['slot'], 'requests', 'Requests that wait for their slot'),
  svc_requests_total: counter(['slot', 'route', 'code'], 'requests', 'Finished requests; code 499: the client disconnected first'),
  svc_request_seconds: histogram(['slot', 'route'], 'seconds', 'Time from a request’s arrival to the end of its answer', REQUEST_SECONDS),
  svc_parked_seconds: histogram(
    ['slot'],
    'seconds',
    'How long requests were parked; requests that were not parked do not count',
    PARKED_SECONDS,
  ),
  svc_fallback_total: counter(
    ['slot', 'to', 'reason'],
    'requests',
    'Finished requests that have moved from a slot to another one, by the condition of `[fallback]` that held, or "split"',
  ),
  gen_ai_server_time_to_first_token_seconds: histogram(
    ['slot', 'route'],
    'seconds',
    'Time from a request’s arrival to the first byte of the answer’s body; streamed answers only',
    FIRST_TOKEN_SECONDS,
  ),
  gen_ai_server_time_per_output_token_seconds: histogram(
    ['slot', 'route'],
    'seconds',
    'Time from the first byte to the end of a streamed answer, divided by its output tokens after the first; only if the model server reports them',
    PER_TOKEN_SECONDS,
  ),
  svc_output_tokens_per_second: histogram(
    ['slot'],
    'tokens per second',
    'Output tokens of a request, divided by its time without that in which it was parked; only if the model server reports them',
    TOKENS_PER_SECOND,
  ),
  gen_ai_client_token_usage: histogram(
    ['slot', 'gen_ai_token_type'],
    'tokens',
    'Tokens per request, as reported by the model server',
    TOKENS,
  ),

  svc_usage_requests_total: counter(USED, 'requests', 'Finished requests of a caller; only in a cluster, as all of `svc_usage_*`'),
  svc_usage_errors_total: counter(USED, 'requests', 'Those with a status from 400, also if the client left'),
  svc_usage_estimated_requests_total: counter(USED, 'requests', 'Those whose tokens were guessed'),
  svc_usage_tokens_total: counter(
    [...USED, 'kind'],
    'tokens',
    '"input": of prompts, also cached ones; "cached": those of them that the server had computed before; "output": of answers',
  ),
  svc_usage_seconds_total: counter(
    [...USED, 'kind'],
    'seconds',
    '"queue": requests waited for their slot; "busy": servers worked on them; "audio": sound that was heard or spoken, where its length is known',
  ),
  svc_usage_images_total: counter(USED, 'images', 'Images in answers'),
  svc_usage_cost_total: counter(USED, 'currency units', 'Cost by the prices of slots'),
  svc_usage_loads_total: counter(USED, 'loads', 'How often the slot was loaded for a request of the caller; counted by the leader'),
  svc_usage_evictions_total: counter(
    USED,
    'evictions',
    'How often the slot was stopped to make room for such a load; counted by the leader',
  ),

  svc_reconcile_passes_total: counter(
    ['result'],
    'passes',
    'Finished passes: "ok"; "unreachable": the runtime did not answer; "unreadable": the slots could not be read; "refused": the plan broke a rule',
  ),
  svc_reconcile_pass_seconds: histogram([], 'seconds', 'Duration of a pass', PASS_SECONDS),
  svc_reconcile_last_pass_timestamp_seconds: gauge([], 'Unix seconds', 'When the last pass published the board; 0 before the first one'),
  svc_actions_total: byLeader(counter(['action', 'result'], 'actions', 'Executed actions: "done", "failed" or "cancelled"')),
  svc_pull_bytes_total: byLeader(counter(['what'], 'bytes', 'Bytes of models and images that were downloaded')),

  svc_read_ahead_bytes_total: byLeader(
    counter([], 'bytes', 'Bytes of models that were read from the disk into memory before their server started'),
  ),
  svc_loads_ahead_total: byLeader(
    counter(['slot', 'result'], 'loads', 'Loads by a forecast of "prewarm": "hit" if a request came within half an hour, else "miss"'),
  ),

  svc_leader_transitions_total: seenByAll(counter([], 'transitions', 'How often the leader has changed since the service was installed')),
  svc_kube_requests_total: counter(
    ['verb', 'resource', 'code'],
    'requests',
    'Requests to the Kubernetes API server, when they are answered; a watch counts when it begins. Code: the status, or "unreachable", "untrusted" (certificates), "no_credentials" or "aborted"',
  ),
  svc_kube_request_seconds: histogram(
    ['verb', 'resource'],
    'seconds',
    'Time to the answer of the Kubernetes API server, or to its beginning for a watch or a log; answered requests only',
    KUBE_SECONDS,
  ),
  svc_kube_copy_age_seconds: gauge(
    ['resource'],
    'seconds',
    'How long ago the local copy of these objects was certainly current: 0 while its watch works, even if nothing changes; otherwise since the last sign of the API server',
  ),
  svc_kube_copy_lists_total: counter(
    ['resource', 'cause'],
    'lists',
    'How often the local copy was read as a whole, and why: "start", "due", "lost" (events were missing), "expired" (the server no longer had the version)',
  ),
  svc_kube_copy_watches_total: counter(
    ['resource', 'result'],
    'watches',
    'Watches that have ended: "ended" (in time), "relist" (time for a list), "broken", "lost" (events were missing), "expired", "refused"',
  ),
  svc_status_writes_total: byLeader(
    counter(
      ['what', 'result'],
      'writes',
      'Attempts to write a "status" or an "event" to the API server: "done", "conflict" (the object has changed, so it is written again) or "failed"',
    ),
  ),
  svc_status_writes_waiting: byLeader(
    gauge(
      ['what'],
      'writes',
      'Writes of a "status" or an "event" that are due and not done yet: they wait for their turn, or for the API server',
    ),
  ),

  svc_worker_up: gauge(
    ['worker'],
    '1',
    'With `SVC_WORKERS`: 1 for a worker that has reported since it was started, 0 for one that has ended',
  ),
  svc_worker_starts_total: counter(['worker'], 'starts', 'How often a worker was started: more than once if it has ended by itself'),
  svc_worker_requests_total: counter(['worker'], 'requests', 'Requests that a worker has answered; all other metrics count them as well'),
  svc_worker_connections: gauge(['worker'], 'connections', 'Open client connections of a worker'),
  svc_worker_cpu_seconds_total: counter(['worker'], 'seconds', 'User and system CPU time of a worker'),
  svc_worker_resident_memory_bytes: gauge(['worker'], 'bytes', 'Resident memory of a worker'),

  nodejs_eventloop_delay_mean_seconds: gauge([], 'seconds', 'How long the turns of the event loop took since the last scrape, on average'),
  nodejs_eventloop_delay_p50_seconds: gauge([], 'seconds', 'The same, median'),
  nodejs_eventloop_delay_p99_seconds: gauge([], 'seconds', 'The same, 99th percentile'),
  nodejs_eventloop_delay_max_seconds: gauge([], 'seconds', 'The same, maximum'),
  nodejs_eventloop_utilization_ratio: gauge([], '1', 'Share of the time since the last scrape in which the event loop was not idle'),
  process_resident_memory_bytes: gauge([], 'bytes', 'Resident memory of the controller and gateway'),
  process_start_time_seconds: gauge([], 'Unix seconds', 'Start of the process'),
  process_cpu_seconds_total: counter([], 'seconds', 'User and system CPU time of the controller and gateway'),
} as const satisfies Readonly<Record<string, MetricFacts>>;

type Metrics = typeof METRICS;

export type MetricName<Type extends MetricFacts['type']> = {
  [Name in keyof Metrics]: Metrics[Name] extends { readonly type: Type } ? Name : never;
}[keyof Metrics];

function gauge(labels: readonly string[], unit: string, help: string) {
  return { type: 'gauge', labels, unit, help, scope: 'replica' } as const;
}

function counter(labels: readonly string[], unit: string, help: string) {
  return { type: 'counter', labels, unit, help, scope: 'replica' } as const;
}

function histogram(labels: readonly string[], unit: string, help: string, buckets: readonly number[]) {
  return { type: 'histogram', labels, unit, help, buckets, scope: 'replica' } as const;
}

function seenByAll<Facts extends MetricFacts>(facts: Facts) {
  const { scope: _, ...same } = facts;
  return { ...same, scope: 'same' } as const;
}

function byLeader<Facts extends MetricFacts>(facts: Facts) {
  const { scope: _, ...same } = facts;
  return { ...same, scope: 'leader' } as const;
}
