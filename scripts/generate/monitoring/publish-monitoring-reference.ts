/** Generates the reference pages of metrics and alerts. Pure. */
import { METRICS } from '../../../src/api/metrics/metric-table.ts';
import { alignedTable, code, page, table } from '../publish-reference.ts';
import { ALERT_GROUPS } from './alerts.ts';

const SCOPES = { replica: 'each its own', same: 'all the same', leader: 'leader' } as const;

export function metricReference(): string {
  const rows = Object.entries(METRICS).map(([name, { type, labels, scope, unit, help }]) => [
    code(name),
    type,
    labels.map(code).join(', '),
    SCOPES[scope],
    unit === '1' ? '' : unit,
    help,
  ]);
  const buckets = Object.entries(METRICS).flatMap(([name, facts]) => ('buckets' in facts ? [[code(name), facts.buckets.join(', ')]] : []));
  return page('Metrics', [
    '`GET /api/metrics` returns these metrics in the text format of Prometheus. Names that begin with `gen_ai_` and `nodejs_` are those of the semantic conventions of',
    'OpenTelemetry. A slot has series only while it exists, and every other label has a fixed set of values, so the number of series is bounded.',
    '',
    'Several replicas of the gateway export the same names. The column "Replicas" says how to put their values together: "each its own": add them up, or look at each',
    'instance; "all the same": every replica shows what it sees of the same thing, so take the maximum, as in `max by (slot) (svc_slot_state)`, or add',
    '`and on (namespace, job, instance) svc_leads == 1`; "leader": only the leader does what is counted, so add them up.',
    '',
    ...table(['Metric', 'Type', 'Labels', 'Replicas', 'Unit', 'Meaning'], rows),
    '',
    '## Buckets',
    '',
    ...table(['Histogram', 'Upper bounds'], buckets),
  ]);
}

/** The alerts that concern the operators of a cluster, for `docs/cluster/monitoring.md`: all but those of requests, which are about load. */
export function clusterAlertTable(): string {
  const rows = ALERT_GROUPS.filter(({ name }) => name !== 'svc-requests').flatMap(({ alerts }) =>
    alerts.map(({ name, severity, action }) => [`[${name}](../reference/alerts.md#${name.toLowerCase()})`, severity, action]),
  );
  return alignedTable(['Alert', 'Severity', 'What to check'], rows).join('\n');
}

export function alertReference(): string {
  return page('Alerts', [
    'These rules are in `manifests/monitoring`. [monitoring.md](../monitoring.md) says how to install them.',
    ...ALERT_GROUPS.flatMap(({ title, alerts }) => [
      '',
      `## ${title}`,
      ...alerts.flatMap(({ name, severity, expr, meaning, action, for: duration }) => [
        '',
        `### ${name}`,
        '',
        `Severity ${code(severity)}, after ${duration === '0m' ? 'the first evaluation' : duration}.`,
        '',
        meaning,
        '',
        `What to do: ${action}`,
        '',
        '```promql',
        expr,
        '```',
      ]),
    ]),
  ]);
}
