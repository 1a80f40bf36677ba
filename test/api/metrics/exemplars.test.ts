/** The metrics in OpenMetrics, by the rules of its specification: https://prometheus.io/docs/specs/om/open_metrics_spec/. */
import { expect, test } from '@jest/globals';
import type { TracedRequest } from '../../../src/gateway/trace/request-trace.ts';
import { CLUSTER, img, start } from './metrics-fixture.ts';

const SUFFIXES: Readonly<Record<string, readonly string[]>> = {
  counter: ['_total'],
  gauge: [''],
  histogram: ['_bucket', '_sum', '_count'],
};
const EXEMPLAR = /^(\S+_bucket\{le="([^"]+)".*\} \d+) # (\{trace_id="[0-9a-f]{32}",span_id="[0-9a-f]{16}"\}) (\S+) ([\d.]+)$/;
/** A specification's limit. */
const LABEL_CHARACTERS = 128;
const SAMPLE = /^([a-z_]\w*)(?:\{(?:[a-z_]\w*="(?:[^"\\]|\\[\\n"])*",?)*\})? (?:-?[\d.]+(?:e[-+]?\d+)?|NaN|[+-]Inf)$/;

const traceOf = (id: string): TracedRequest => ({
  traceId: id.repeat(32),
  spanId: id.repeat(16),
  parentId: undefined,
  method: 'POST',
  model: 'm',
  at: 1_800_000_000_000,
  ms: 20,
  phases: [],
});

function filled() {
  const { metrics } = start('ready', CLUSTER);
  const request = { slot: img, route: '/v1/chat/completions', status: 200, seconds: 0.02 };
  const slow = { ...request, seconds: 5000, parkedSeconds: 1000, ttftSeconds: 1500, tokens: { input: 0, output: 1e9 } };
  metrics.requestFinished({ ...request, trace: traceOf('a') });
  metrics.requestFinished({ ...request, trace: traceOf('b') });
  metrics.requestFinished(request);
  metrics.requestFinished({ ...slow, trace: traceOf('c') });
  metrics.reconcile.passFinished({ seconds: 0.5, result: 'ok' });
  return metrics;
}

test('each sample belongs to the family above it, whose name is its own', async () => {
  const text = await filled().text('openmetrics');
  expect(text.endsWith('\n# EOF\n')).toBe(true);
  const families = new Set<string>();
  let [name, type] = ['', ''];
  for (const line of text.slice(0, -'# EOF\n'.length).trimEnd().split('\n')) {
    const [, key, family = '', rest = ''] = /^# (HELP|TYPE) (\w+) (.*)$/.exec(line) ?? [];
    if (key === 'HELP') {
      expect(families).not.toContain(family);
      expect(rest).not.toMatch(/(?<!\\)"/);
      families.add(family);
    } else if (key === 'TYPE') [name, type] = [family, rest];
    else {
      const [sample, ...exemplars] = line.split(' # ');
      const found = SAMPLE.exec(sample ?? '');
      expect([line, found !== null]).toEqual([line, true]);
      expect(SUFFIXES[type]?.map((suffix) => `${name}${suffix}`)).toContain(found?.[1]);
      expect(exemplars.length).toBeLessThanOrEqual(type === 'histogram' ? 1 : 0);
    }
  }
  expect(families.size).toBeGreaterThan(30);
});

test('exemplars name the last request of a bucket that has a trace, and its value is in the bucket', async () => {
  const lines = (await filled().text('openmetrics')).split('\n').filter((line) => line.includes('trace_id'));
  const found = lines.map((line) => {
    const [, sample = '', bound, labels = '', value, at] = EXEMPLAR.exec(line) ?? [];
    expect(labels.replaceAll(/[{}=",]/g, '').length).toBeLessThanOrEqual(LABEL_CHARACTERS);
    expect(Number(value)).toBeLessThanOrEqual(bound === '+Inf' ? Number.POSITIVE_INFINITY : Number(bound));
    return [sample.slice(0, sample.indexOf('_bucket')), bound, labels.slice(11, 12), Number(value), at];
  });
  expect(found).toEqual([
    ['svc_request_seconds', '0.025', 'b', 0.02, '1800000000.02'],
    ['svc_request_seconds', '+Inf', 'c', 5000, '1800000000.02'],
    ['svc_parked_seconds', '+Inf', 'c', 1000, '1800000000.02'],
    ['gen_ai_server_time_to_first_token_seconds', '+Inf', 'c', 1500, '1800000000.02'],
    ['gen_ai_server_time_per_output_token_seconds', '0.01', 'c', 3500 / (1e9 - 1), '1800000000.02'],
    ['svc_output_tokens_per_second', '+Inf', 'c', 250_000, '1800000000.02'],
    ['gen_ai_client_token_usage', '1', 'c', 0, '1800000000.02'],
    ['gen_ai_client_token_usage', '+Inf', 'c', 1e9, '1800000000.02'],
  ]);
});

test('the series are those of the other format, which has no exemplars', async () => {
  const metrics = filled();
  const samplesOf = (text: string): readonly string[] =>
    text
      .split('\n')
      .filter((line) => line !== '' && !line.startsWith('#'))
      .map((line) => line.replace(/ # .*/, '').replace(/ \S+$/, ''));
  const plain = await metrics.text();
  expect(plain).not.toContain('trace_id');
  expect(plain).not.toContain('# EOF');
  expect(samplesOf(await metrics.text('openmetrics'))).toEqual(samplesOf(plain));
});

test('OpenMetrics is offered where requests have traces', () => {
  const accept = 'application/openmetrics-text;version=1.0.0';
  expect(start().metrics.formatFor(accept)).toBe('prometheus');
  expect(start('ready', undefined, { hasTraces: true }).metrics.formatFor(accept)).toBe('openmetrics');
  expect(start('ready', undefined, { hasTraces: true }).metrics.formatFor('*/*')).toBe('prometheus');
});
