/** What the Grafana dashboard shows: rows of panels with their queries. */
import { JOB, RATE, SLOTS, type Query, type Row } from './dashboard-panel.ts';
import { CLUSTER_ROW } from './dashboard-rows-cluster.ts';

/** The 50th and 95th percentile of a histogram, by slot. */
function percentiles(name: string): readonly Query[] {
  return [0.5, 0.95].map((share) => [
    `histogram_quantile(${share}, sum by (le, slot) (rate(${name}_bucket{${SLOTS}}[${RATE}])))`,
    `{{slot}} p${share * 100}`,
  ]);
}

export const ROWS: readonly Row[] = [
  {
    title: 'Slots',
    panels: [
      {
        title: 'Slots that answer',
        description: 'Slots whose condition "Ready" is true.',
        kind: 'stat',
        queries: [[`sum(max by (slot) (svc_slot_condition{${SLOTS},type="Ready",status="True"}))`, '']],
      },
      {
        title: 'Stalled slots',
        description: 'Slots that wait for somebody to act.',
        kind: 'stat',
        queries: [[`sum(max by (slot) (svc_slot_condition{${SLOTS},type="Stalled",status="True"}))`, '']],
      },
      {
        title: 'Requests in flight',
        description: 'Requests that a slot is answering.',
        kind: 'stat',
        queries: [[`sum(svc_inflight{${SLOTS}})`, '']],
      },
      {
        title: 'Parked requests',
        description: 'Requests that wait for their slot.',
        kind: 'stat',
        queries: [[`sum(svc_parked{${SLOTS}})`, '']],
      },
      {
        title: 'Not answering',
        description: '1 while the slot does not answer.',
        kind: 'state-timeline',
        queries: [[`max by (slot) (svc_slot_condition{${SLOTS},type="Ready",status=~"False|Unknown"})`, '{{slot}}']],
      },
      {
        title: 'Starts and stops',
        description: 'Transitions between states per hour.',
        kind: 'timeseries',
        queries: [
          [
            `max by (slot, to) (sum by (instance, slot, to) (increase(svc_slot_transitions_total{${SLOTS},to=~"starting|ready|unloading|offline"}[1h])))`,
            '{{slot}} {{to}}',
          ],
        ],
      },
    ],
  },
  {
    title: 'Requests',
    panels: [
      {
        title: 'Requests by status',
        description: 'Finished requests per second. 499: the client left first.',
        kind: 'timeseries',
        unit: 'reqps',
        queries: [[`sum by (code) (rate(svc_requests_total{${JOB},slot=~"$slot|"}[${RATE}]))`, '{{code}}']],
      },
      {
        title: 'Duration',
        description: 'From the arrival of a request to the end of its answer.',
        kind: 'timeseries',
        unit: 's',
        queries: percentiles('svc_request_seconds'),
      },
      {
        title: 'Time in the queue',
        description: 'Of requests that had to wait for their slot.',
        kind: 'timeseries',
        unit: 's',
        queries: percentiles('svc_parked_seconds'),
      },
      {
        title: 'Parked and in flight',
        description: 'Requests that wait, and requests that are being answered.',
        kind: 'timeseries',
        queries: [
          [`sum by (slot) (svc_parked{${SLOTS}})`, '{{slot}} parked'],
          [`sum by (slot) (svc_inflight{${SLOTS}})`, '{{slot}} in flight'],
        ],
      },
    ],
  },
  {
    title: 'Tokens',
    panels: [
      {
        title: 'Time to first token',
        description: 'Streamed answers only.',
        kind: 'timeseries',
        unit: 's',
        queries: percentiles('gen_ai_server_time_to_first_token_seconds'),
      },
      {
        title: 'Time per output token',
        description: 'Streamed answers whose token counts are known.',
        kind: 'timeseries',
        unit: 's',
        queries: percentiles('gen_ai_server_time_per_output_token_seconds'),
      },
      {
        title: 'Output tokens per second of a request',
        description: 'What one client sees, reading of the prompt included.',
        kind: 'timeseries',
        queries: percentiles('svc_output_tokens_per_second'),
      },
      {
        title: 'Tokens per second of a slot',
        description: 'All requests together, counted when they end.',
        kind: 'timeseries',
        queries: [
          [`sum by (slot, gen_ai_token_type) (rate(gen_ai_client_token_usage_sum{${SLOTS}}[${RATE}]))`, '{{slot}} {{gen_ai_token_type}}'],
        ],
      },
    ],
  },
  {
    title: 'Controller',
    panels: [
      {
        title: 'Passes by result',
        description: 'Passes of the reconcile loop per second.',
        kind: 'timeseries',
        queries: [[`sum by (result) (rate(svc_reconcile_passes_total{${JOB}}[${RATE}]))`, '{{result}}']],
      },
      {
        title: 'Duration of a pass',
        description: 'Slow work runs outside passes.',
        kind: 'timeseries',
        unit: 's',
        queries: [[`histogram_quantile(0.95, sum by (le) (rate(svc_reconcile_pass_seconds_bucket{${JOB}}[${RATE}])))`, 'p95']],
      },
      {
        title: 'Failed actions and drift',
        description: 'Per hour.',
        kind: 'timeseries',
        queries: [
          [`sum by (action) (increase(svc_actions_total{${JOB},result="failed"}[1h]))`, '{{action}}'],
          [`max by (slot) (increase(svc_drift_total{${SLOTS}}[1h]))`, 'drift of {{slot}}'],
        ],
      },
      {
        title: 'Downloads',
        description: 'Models and images.',
        kind: 'timeseries',
        unit: 'Bps',
        queries: [[`sum by (what) (rate(svc_pull_bytes_total{${JOB}}[${RATE}]))`, '{{what}}']],
      },
    ],
  },
  CLUSTER_ROW,
  {
    title: 'Process',
    panels: [
      {
        title: 'Event-loop delay',
        description: 'How late timers run: every request waits at least so long.',
        kind: 'timeseries',
        unit: 's',
        queries: [
          [`nodejs_eventloop_delay_p99_seconds{${JOB}}`, '{{instance}} p99'],
          [`nodejs_eventloop_delay_max_seconds{${JOB}}`, '{{instance}} max'],
        ],
      },
      {
        title: 'CPU and event loop',
        description: 'Shares of one core.',
        kind: 'timeseries',
        unit: 'percentunit',
        queries: [
          [`rate(process_cpu_seconds_total{${JOB}}[${RATE}])`, '{{instance}} CPU'],
          [`nodejs_eventloop_utilization_ratio{${JOB}}`, '{{instance}} event loop'],
        ],
      },
      {
        title: 'Memory',
        description: 'Of controller and gateway, without the model servers.',
        kind: 'timeseries',
        unit: 'bytes',
        queries: [[`process_resident_memory_bytes{${JOB}}`, '{{instance}}']],
      },
    ],
  },
];
