/** What the Grafana dashboard shows of a cluster: the replicas of the gateway and of slots, and the API server. Without data on a host. */
import { JOB, RATE, SLOTS, type Row } from './dashboard-panel.ts';

const KUBE = 'svc_kube_requests_total';

export const CLUSTER_ROW: Row = {
  title: 'Cluster',
  panels: [
    {
      title: 'Leaders',
      description: 'Replicas that lead: one, except for moments.',
      kind: 'stat',
      queries: [[`sum(svc_leads{${JOB}} and on (namespace, job, instance) svc_build_info{${JOB},runtime="kube"})`, '']],
    },
    {
      title: 'Gateways',
      description: 'Replicas of the gateway that are scraped.',
      kind: 'stat',
      queries: [[`count(svc_build_info{${JOB},runtime="kube"})`, '']],
    },
    {
      title: 'Missing replicas',
      description: 'Replicas of slots that should answer and do not.',
      kind: 'stat',
      queries: [
        [
          `sum(clamp_min(max by (namespace, job, slot) (svc_slot_replicas_desired{${SLOTS}}) ` +
            `- max by (namespace, job, slot) (svc_slot_replicas_ready{${SLOTS}}), 0))`,
          '',
        ],
      ],
    },
    {
      title: 'Oldest copy',
      description: 'How long ago the oldest local copy of objects was certainly current.',
      kind: 'stat',
      unit: 's',
      queries: [[`max(svc_kube_copy_age_seconds{${JOB}})`, '']],
    },
    {
      title: 'Leader',
      description: '1 while the replica leads.',
      kind: 'state-timeline',
      queries: [[`svc_leads{${JOB}} and on (namespace, job, instance) svc_build_info{${JOB},runtime="kube"}`, '{{instance}}']],
    },
    {
      title: 'Replicas of slots',
      description: 'Replicas that should answer, and that do.',
      kind: 'timeseries',
      queries: [
        [`max by (slot) (svc_slot_replicas_desired{${SLOTS}})`, '{{slot}} desired'],
        [`max by (slot) (svc_slot_replicas_ready{${SLOTS}})`, '{{slot}} ready'],
      ],
    },
    {
      title: 'Requests to the API server',
      description: 'By code. "unreachable", "untrusted" and "no_credentials" have no answer; "aborted" ones are no longer needed.',
      kind: 'timeseries',
      unit: 'reqps',
      queries: [[`sum by (code) (rate(${KUBE}{${JOB}}[${RATE}]))`, '{{code}}']],
    },
    {
      title: 'Requests to the API server, by kind',
      description: 'What is read and written. A watch counts when it begins.',
      kind: 'timeseries',
      unit: 'reqps',
      queries: [[`sum by (verb, resource) (rate(${KUBE}{${JOB}}[${RATE}]))`, '{{verb}} {{resource}}']],
    },
    {
      title: 'Latency of the API server',
      description: '95th percentile of answered requests; of watches, until they begin.',
      kind: 'timeseries',
      unit: 's',
      queries: [[`histogram_quantile(0.95, sum by (le, verb) (rate(svc_kube_request_seconds_bucket{${JOB}}[${RATE}])))`, '{{verb}}']],
    },
    {
      title: 'Age of local copies',
      description: 'How long ago each copy was certainly current: 0 while its watch works, also if nothing changes.',
      kind: 'timeseries',
      unit: 's',
      queries: [[`max by (instance, resource) (svc_kube_copy_age_seconds{${JOB}})`, '{{instance}} {{resource}}']],
    },
    {
      title: 'Lists and watches',
      description: 'Per hour, without those that belong to normal work.',
      kind: 'timeseries',
      queries: [
        [
          `sum by (resource, result) (increase(svc_kube_copy_watches_total{${JOB},result=~"broken|lost|expired|refused"}[1h]))`,
          '{{resource}} watch {{result}}',
        ],
        [`sum by (resource, cause) (increase(svc_kube_copy_lists_total{${JOB},cause=~"lost|expired"}[1h]))`, '{{resource}} list {{cause}}'],
      ],
    },
    {
      title: 'Statuses and Events',
      description: 'Writes of the leader that are due, and failures per hour.',
      kind: 'timeseries',
      queries: [
        [`sum by (what) (svc_status_writes_waiting{${JOB}})`, '{{what}} waiting'],
        [`sum by (what) (increase(svc_status_writes_total{${JOB},result="failed"}[1h]))`, '{{what}} failed'],
      ],
    },
  ],
};
