/** Tests what Helm prints after an installation. Renderers print no notes with the objects, so a copy of the chart has them as an object. */
import { cp, mkdtemp, rename, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { renderChart } from '../../scripts/render-manifests.ts';
import { describeWithHelm } from '../support/require/require-helm.ts';
import { at } from './rendered.ts';
import { VALUE_SETS } from './value-sets.ts';

describeWithHelm('The notes of the chart', () => {
  let chart = '';
  beforeAll(async () => {
    chart = await mkdtemp(join(tmpdir(), 'svc-notes-'));
    await cp(join(import.meta.dirname, '../../helm/svc'), chart, { recursive: true });
    await rename(join(chart, 'templates/NOTES.txt'), join(chart, 'notes.txt'));
    await writeFile(join(chart, 'templates/notes.yaml'), 'notes: {{ tpl (.Files.Get "notes.txt") . | quote }}\n');
  });
  afterAll(async () => rm(chart, { recursive: true, force: true }));

  async function notes(values: object): Promise<string> {
    await writeFile(join(chart, 'given.json'), JSON.stringify(values));
    const objects = await renderChart(['--namespace', 'inference', '--values', join(chart, 'given.json')], 'prod', chart);
    return String(at(objects.find(([source]) => source === 'notes.yaml')?.[1], 'notes'));
  }

  test.each(Object.entries(VALUE_SETS))('say what to do next with the values "%s"', async (_name, values) => {
    const text = await notes(values);
    expect(text).toContain('helm -n inference test prod --logs');
    expect(text).toContain('kubectl -n inference get slots --watch');
    expect(text).toContain('kubectl -n inference delete slots --all');
    expect(text).not.toMatch(/no value|nil|map\[|\n\n\n/);
  });

  test.each([
    [{}, 'port-forward service/prod-svc 8080:80'],
    [{}, 'http://prod-svc.inference/v1.'],
    [{ service: { port: 8000 }, nameOverride: 'llm' }, 'http://prod-llm.inference:8000/v1.'],
    [{ service: { type: 'LoadBalancer' } }, 'get service prod-svc --watch'],
    [{ ingress: { enabled: true, host: 'a.example', hosts: [{ host: 'b.example' }] } }, '  http://a.example/v1\n  http://b.example/v1\n'],
    [{ ingress: { enabled: true, host: 'a.example', tlsSecretName: 'tls' } }, '  https://a.example/v1\n'],
    [{}, 'There are no slots yet.'],
    [{ slots: { tts: {}, primary: {} } }, 'the slots primary, tts.'],
    [{}, 'No storage for models is configured'],
    [{}, 'The image "localhost/svc:'],
  ])('with %j name %j', async (values, text) => {
    expect(await notes(values)).toContain(text);
  });
});
