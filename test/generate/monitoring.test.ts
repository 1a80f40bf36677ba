/** Checks that alert rules and the dashboard name only metrics and labels that exist, in PromQL that can be parsed. */
import { spawnSync } from 'node:child_process';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { parser } from '@prometheus-io/lezer-promql';
import { describe, expect, test } from '@jest/globals';
import { parse } from 'yaml';
import type { Alert } from '../../scripts/generate/monitoring/alert.ts';
import { ALERT_GROUPS } from '../../scripts/generate/monitoring/alerts.ts';
import { METRICS } from '../../src/api/metrics/metric-table.ts';
import { isTable } from '../../src/schema/words/key-case.ts';
import { schemaProblem } from '../support/kube/published-schemas.ts';

const TOP = join(import.meta.dirname, '../..');
const read = async (path: string): Promise<string> => await readFile(join(TOP, path), 'utf8');
const alerts: readonly Alert[] = ALERT_GROUPS.flatMap((group) => group.alerts);
/** Labels that Prometheus adds when it scrapes, and the one of buckets. */
const SCRAPE_LABELS = ['namespace', 'job', 'instance', 'le'];

const PROMTOOL_FILES = ['test/generate/alert-rules.promtool.yaml', 'test/generate/alert-rules-cluster.promtool.yaml'];

/** The series names of a metric, with its labels. */
const SERIES = new Map<string, readonly string[]>(
  Object.entries(METRICS).flatMap(([name, { type, labels }]) =>
    type === 'histogram' ? ['_bucket', '_sum', '_count'].map((suffix) => [`${name}${suffix}`, labels] as const) : [[name, labels] as const],
  ),
);

const SAME_EVERYWHERE = new Set(Object.entries(METRICS).flatMap(([name, { scope }]) => (scope === 'same' ? [name] : [])));

interface Parsed {
  readonly broken: boolean;
  readonly metrics: readonly string[];
  readonly labels: readonly string[];
}

function parsePromql(expr: string): Parsed {
  const found = { broken: false, metrics: new Set<string>(), labels: new Set<string>() };
  parser.parse(expr).iterate({
    enter({ type, from, to }) {
      const text = expr.slice(from, to);
      if (type.isError) found.broken = true;
      else if (type.name === 'Identifier') found.metrics.add(text);
      else if (type.name === 'LabelName') found.labels.add(text);
    },
  });
  return { broken: found.broken, metrics: [...found.metrics], labels: [...found.labels] };
}

/** Returns what is wrong with an expression. */
function problemsOf(expr: string): readonly string[] {
  const { broken, metrics, labels } = parsePromql(expr);
  const known = new Set([...SCRAPE_LABELS, ...metrics.flatMap((name) => SERIES.get(name) ?? [])]);
  return [
    ...(broken ? ['cannot be parsed'] : []),
    ...(metrics.length === 0 ? ['names no metric'] : []),
    ...metrics.filter((name) => !SERIES.has(name)).map((name) => `there is no metric "${name}"`),
    ...labels.filter((name) => !known.has(name)).map((name) => `no metric in it has the label "${name}"`),
  ];
}

/** Returns the metrics of which every replica of the gateway shows the same, and which the expression nevertheless adds up or lists for each replica. */
function countedTwice(expr: string): readonly string[] {
  const found = new Set<string>();
  parser.parse(expr).iterate({
    enter({ type, node, from, to }) {
      const name = expr.slice(from, to);
      if (type.name !== 'Identifier' || !SAME_EVERYWHERE.has(name)) return;
      let around: typeof node | null = node;
      while (around !== null && around.type.name !== 'AggregateExpr') around = around.parent;
      const aggregation = around === null ? '' : expr.slice(around.from, around.to);
      if (!/^(?:max|min) by/.test(aggregation) && !/^\w+ by \([^)]*\binstance\b/.test(aggregation)) found.add(name);
    },
  });
  return [...found];
}

/** Every value under this key, at any depth. */
function valuesOf(value: unknown, key: string): readonly unknown[] {
  if (Array.isArray(value)) return value.flatMap((inner) => valuesOf(inner, key));
  if (!isTable(value)) return [];
  return Object.entries(value).flatMap(([name, inner]) => [...(name === key ? [inner] : []), ...valuesOf(inner, key)]);
}

test('the check finds what is wrong', () => {
  expect(problemsOf('svc_inflight{slot="a"}')).toEqual([]);
  expect(problemsOf('sum by (slot) (rate(svc_requests_total[5m])')).toEqual(['cannot be parsed']);
  expect(problemsOf('svc_in_flight > 1')).toEqual(['there is no metric "svc_in_flight"']);
  expect(problemsOf('svc_parked_seconds > 1')).toEqual(['there is no metric "svc_parked_seconds"']);
  expect(problemsOf('sum by (model) (svc_inflight{state="a"})')).toEqual([
    'no metric in it has the label "model"',
    'no metric in it has the label "state"',
  ]);
});

test('the check finds what would be counted once for each replica', () => {
  expect(countedTwice('sum by (slot) (svc_slot_replicas_ready) < 2')).toEqual(['svc_slot_replicas_ready']);
  expect(countedTwice('svc_slot_condition{type="Stalled"} == 1')).toEqual(['svc_slot_condition']);
  expect(countedTwice('sum(max by (slot) (svc_slot_replicas_ready))')).toEqual([]);
  expect(countedTwice('max by (slot) (sum by (slot, instance) (increase(svc_drift_total[1h])))')).toEqual([]);
  expect(countedTwice('sum(svc_parked)')).toEqual([]);
});

describe('the alert rules', () => {
  test.each(alerts.map((alert) => [alert.name, alert] as const))('%s counts nothing once for each replica', (_name, { expr }) => {
    expect(countedTwice(expr)).toEqual([]);
  });

  test.each(alerts.map((alert) => [alert.name, alert] as const))('%s uses what the service exports', (_name, { expr }) => {
    expect(problemsOf(expr)).toEqual([]);
  });

  test('are the same in all files', async () => {
    const rules: unknown = parse(await read('manifests/monitoring/rules.yaml'));
    expect(valuesOf(rules, 'expr')).toEqual(alerts.map(({ expr }) => expr));
    expect(parse(await read('helm/svc/files/alert-rules.yaml'))).toEqual(rules);
    const object: unknown = parse(await read('manifests/monitoring/prometheus-rule.yaml'));
    if (!isTable(object)) throw new Error('The file holds no object');
    expect(object['spec']).toEqual(rules);
    expect(schemaProblem(object)).toBeUndefined();
  });

  test('have unique names, a duration, and text that names only labels that their results have', () => {
    expect(new Set(alerts.map(({ name }) => name)).size).toBe(alerts.length);
    for (const { name, for: duration, summary, expr, meaning, action } of alerts) {
      expect([name, duration]).toEqual([name, expect.stringMatching(/^\d+[mh]$/)]);
      const named = [...summary.matchAll(/\$labels\.(\w+)/g)].map(([, label = '']) => label);
      const grouped = /\bby \(/.test(expr) ? parsePromql(expr).labels : SCRAPE_LABELS;
      expect([name, named.filter((label) => !grouped.includes(label))]).toEqual([name, []]);
      for (const text of [meaning, action]) expect([name, text]).toEqual([name, expect.stringMatching(/^[A-Z].*\.$/)]);
    }
  });

  const isPresent = spawnSync('promtool', ['--version']).error === undefined;
  const isRequired = process.env['SVC_TEST_REQUIRE']?.includes('promtool') === true;
  (isPresent || isRequired ? test : test.skip)('fire for their cause and for nothing else, according to promtool', () => {
    const { status, stdout, stderr } = spawnSync('promtool', ['test', 'rules', ...PROMTOOL_FILES], { cwd: TOP, encoding: 'utf8' });
    expect([status, `${stdout}${stderr}`]).toEqual([0, expect.stringContaining('SUCCESS')]);
  });

  test('are listed in the page for clusters with what to check, except for those about the requests of clients', async () => {
    const page = await read('docs/cluster/monitoring.md');
    const expected = ALERT_GROUPS.flatMap((group) => (group.name === 'svc-requests' ? [] : group.alerts));
    const rows = new Map(
      [...page.matchAll(/^\| \[(Svc\w+)\]\(\.\.\/reference\/alerts\.md#\w+\) +\| \w+ +\| (.*?) +\|$/gm)].map(([, name, text]) => [
        name,
        text,
      ]),
    );
    expect(rows).toEqual(new Map(expected.map(({ name, action }) => [name, action.replaceAll('|', String.raw`\|`)])));
  });

  test('each have a case for promtool', async () => {
    const cases = (await Promise.all(PROMTOOL_FILES.map(read))).join('');
    expect(alerts.filter(({ name }) => !cases.includes(`alertname="${name}"`))).toEqual([]);
  });
});

describe('the dashboard', () => {
  test('uses what the service exports', async () => {
    const dashboard: unknown = JSON.parse(await read('manifests/monitoring/grafana-dashboard.json'));
    const expressions = valuesOf(dashboard, 'expr').map(String);
    expect(expressions.length).toBeGreaterThan(20);
    // Grafana replaces its variables before it asks Prometheus.
    const asked = expressions.map((expr) => expr.replaceAll('$__rate_interval', '5m').replaceAll(/\$(?:slot|job|namespace)/g, 'x'));
    for (const expr of asked) expect([expr, problemsOf(expr), countedTwice(expr)]).toEqual([expr, [], []]);
    expect(asked.filter((expr) => expr.includes('$'))).toEqual([]);
  });

  test('has panels that do not overlap, each with an id and a description', async () => {
    const { panels }: { panels: { id: number; type: string; description?: string; gridPos: Record<'x' | 'y' | 'w' | 'h', number> }[] } =
      JSON.parse(await read('manifests/monitoring/grafana-dashboard.json'));
    expect(new Set(panels.map(({ id }) => id)).size).toBe(panels.length);
    const cells = panels.flatMap(({ gridPos: { x, y, w, h } }) =>
      Array.from({ length: w * h }, (_, index) => `${x + (index % w)},${y + Math.floor(index / w)}`),
    );
    expect(new Set(cells).size).toBe(cells.length);
    expect(panels.every(({ gridPos: { x, w } }) => x + w <= 24)).toBe(true);
    for (const { type, description } of panels) expect([type, (description ?? '') !== '' || type === 'row']).toEqual([type, true]);
  });
});

describe('the examples of autoscaling', () => {
  const inSlot = (expr: unknown): string => String(expr).replaceAll('<<.LabelMatchers>>', 'namespace="svc",slot="primary"');

  test('ask for metrics that the service exports, and all for the same sum', async () => {
    const rules = parse(await read('manifests/autoscaling/prometheus-adapter-values.yaml'));
    const scaledObject = parse(await read('manifests/autoscaling/scaled-object.yaml'));
    const queries = [...valuesOf(rules, 'metricsQuery').map(inSlot), ...valuesOf(scaledObject, 'query')].map(String);
    expect([queries.length, new Set(queries).size]).toEqual([2, 1]);
    for (const query of [...queries, ...valuesOf(rules, 'seriesQuery').map(String)])
      expect([query, problemsOf(query)]).toEqual([query, []]);
    expect(parsePromql(queries[0] ?? '').metrics.toSorted()).toEqual(['svc_inflight', 'svc_parked']);
  });

  test('name the same metric in the rules of the adapter and in the autoscaler', async () => {
    const rules = parse(await read('manifests/autoscaling/prometheus-adapter-values.yaml'));
    const autoscaler = parse(await read('manifests/autoscaling/horizontal-pod-autoscaler.yaml'));
    expect(valuesOf(autoscaler, 'metric')).toEqual([{ name: valuesOf(rules, 'as')[0], selector: { matchLabels: { slot: 'primary' } } }]);
  });
});
