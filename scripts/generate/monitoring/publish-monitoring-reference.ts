/** Generates the reference pages of metrics and alerts. Pure. */
import { METRICS } from '../../../src/api/metrics/metric-table.ts';
import { code, page, table } from '../publish-reference.ts';
import { ALERT_GROUPS } from './alerts.ts';

export function metricReference(): string {
  const rows = Object.entries(METRICS).map(([name, { type, labels, unit, help }]) => [
    code(name),
    type,
    labels.map(code).join(', '),
    unit === '1' ? '' : unit,
    help,
  ]);
  const buckets = Object.entries(METRICS).flatMap(([name, facts]) => ('buckets' in facts ? [[code(name), facts.buckets.join(', ')]] : []));
  return page('Metrics', [
    '`GET /api/metrics` returns these metrics in the text format of Prometheus. Names that begin with `gen_ai_` and `nodejs_` are those of the semantic conventions of',
    'OpenTelemetry. A slot has series only while it exists, and every other label has a fixed set of values, so the number of series is bounded.',
    '',
    ...table(['Metric', 'Type', 'Labels', 'Unit', 'Meaning'], rows),
    '',
    '## Buckets',
    '',
    ...table(['Histogram', 'Upper bounds'], buckets),
  ]);
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
