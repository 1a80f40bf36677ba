import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import fc from 'fast-check';
import { parse } from 'yaml';
import { resourceText } from '../../src/cli/verbs/compare-slots.ts';
import { parseResources } from '../../src/cli/manifests/parse-resources.ts';
import { SlotName } from '../../src/schema/words/names.ts';
import { slotDocuments } from '../schema/slot-arbitrary.ts';
import { svcctl } from './run-svcctl.ts';

let dir: string;
beforeAll(async () => {
  dir = await mkdtemp(path.join(tmpdir(), 'svcctl-manifests-'));
});
afterAll(() => rm(dir, { recursive: true, force: true }));

const name = SlotName.parse('mine');
const HEAD = 'apiVersion: inference.svc.dev/v1alpha1\nkind: SlotSpec\n';
const slot = (metadata: string, spec = 'model: {default: x}'): string => `${HEAD}metadata: {${metadata}}\nspec: {${spec}}\n`;
const convert = (input: string, ...args: readonly string[]) => svcctl(['convert', '-f', '-', ...args], { input });

describe('objects of other kinds', () => {
  test('are skipped with a note, in documents, lists and kustomizations', async () => {
    const list = `apiVersion: v1\nkind: List\nitems:\n  - ${slot('name: stt').trimEnd().replaceAll('\n', '\n    ')}\n  - {apiVersion: v1, kind: Secret, metadata: {name: s}}\n`;
    await mkdir(path.join(dir, 'base'));
    await writeFile(path.join(dir, 'base/kustomization.yaml'), 'resources: [slots.yaml]\n');
    const deployment = 'apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: web}\n';
    await writeFile(path.join(dir, 'base/slots.yaml'), `# two slots\n---\n${slot('name: img')}---\n${deployment}---\n${list}`);
    const { code, out, err } = await svcctl(['validate', '-f', path.join(dir, 'base')]);
    expect({ code, out }).toEqual({ code: 0, out: '2 slots are valid\n' });
    expect(err.replaceAll(dir, '').split('\n')).toEqual([
      'Skipped the kustomization in "/base/kustomization.yaml": it is not a SlotSpec',
      'Skipped Deployment "web" in "/base/slots.yaml": it is not a SlotSpec',
      'Skipped Secret "s" in "/base/slots.yaml": it is not a SlotSpec',
      '',
    ]);
  });

  test('are not skipped if only the API version or the kind of a slot is misspelled', async () => {
    const wrong = await svcctl(['validate', '-f', '-'], { input: slot('name: img').replace('v1alpha1', 'v1') });
    expect(wrong).toMatchObject({ code: 1, out: expect.stringContaining('Set "apiVersion" to "inference.svc.dev/v1alpha1"') });
    const kind = await svcctl(['validate', '-f', '-'], { input: slot('name: img').replace('SlotSpec', 'Slot') });
    expect(kind).toMatchObject({ code: 1, out: expect.stringContaining('Set "kind" to "SlotSpec"') });
    const none = await svcctl(['validate', '-f', '-'], { input: 'apiVersion: v1\nkind: Secret\n' });
    expect(none).toMatchObject({ code: 1, err: expect.stringContaining('No slots found') });
  });
});

describe('keys that Kubernetes may drop silently', () => {
  test('are refused, with their position and that reason', async () => {
    const input = `${HEAD}metadata: {name: img, lables: {a: b}}\nspec:\n  model: {default: x, contxt: 5}\n  priority: x\nspecs: {}\n`;
    const { code, out } = await svcctl(['validate', '-f', '-'], { input });
    expect(code).toBe(1);
    expect(out.split('\n').toSorted()).toEqual([
      '',
      '<stdin>:3:31: metadata.lables: Unknown key "lables"; Kubernetes may drop it silently',
      '<stdin>:5:31: spec.model.contxt: Unknown key "contxt"; did you mean "context"?; Kubernetes may drop it silently',
      '<stdin>:6:13: spec.priority: Write a number, not "x"',
      '<stdin>:7:8: specs: Unknown key "specs"; Kubernetes may drop it silently',
    ]);
  });
});

describe('the YAML of a resource', () => {
  test('means the same in YAML 1.1 and 1.2 and to svcctl, for any slot', () => {
    fc.assert(
      fc.property(slotDocuments, (document) => {
        const text = resourceText({ name, document, metadata: { namespace: 'ai' } });
        const object = {
          apiVersion: 'inference.svc.dev/v1alpha1',
          kind: 'SlotSpec',
          metadata: { name: 'mine', namespace: 'ai' },
          spec: document,
        };
        expect(parse(text, { version: '1.1' })).toEqual(object);
        expect(parse(text)).toEqual(object);
        expect(parseResources(text, 'x.yaml')).toMatchObject({ problems: [], slots: [{ name, document, metadata: { namespace: 'ai' } }] });
      }),
      { numRuns: 500 },
    );
  });

  test.each(['on', 'no', 'y', '12:30:45', '2026-01-31T12:00:00Z', '0o17', '017', '1_000', '~', 'null', '=', '<<', '0x1f', '1e3', '.inf'])(
    'keeps the text %s a text',
    (text) => {
      const written = resourceText({ name, document: { model: { default: 'm' }, env: { A: text } }, metadata: {} });
      for (const version of ['1.1', '1.2'] as const) expect(parse(written, { version })).toHaveProperty('spec.env.A', text);
    },
  );

  test('means the same as to Kubernetes: "on" is not a text, a time is one, and "<<" merges', () => {
    const read = (spec: string) => parseResources(slot('name: img', spec), 'x.yaml');
    expect(read('model: {default: x}, env: {A: on}').problems).toMatchObject([{ path: ['spec', 'env', 'A'] }]);
    expect(read('model: {default: x}, env: {A: 12:30:45}').problems).toEqual([]);
    expect(read('model: {default: x}, restartedAt: 2026-01-31T12:00:00Z').problems).toEqual([]);
    const merged = `${HEAD}metadata: {name: img}\nspec:\n  model: &m {default: x}\n  lifecycle: {}\n`;
    expect(
      parseResources(`${merged}---\n${merged.replace('&m {default: x}', '{<<: {default: z}, context: 64}').replace('img', 'stt')}`, 'x')
        .slots,
    ).toMatchObject([{ name: 'img' }, { name: 'stt', document: { model: { default: 'z', context: 64 } } }]);
  });
});

describe('svcctl convert with resources of a cluster', () => {
  test('keeps the namespace and the labels and annotations of users, and nothing that the server writes', async () => {
    const input = `${HEAD}metadata:
  name: img
  namespace: ai
  labels: {team: vision}
  annotations: {note: "on", kubectl.kubernetes.io/last-applied-configuration: "{}"}
  uid: u
  resourceVersion: "5"
  generation: 2
  creationTimestamp: "2026-01-31T12:00:00Z"
  managedFields: []
spec: {model: {default: x}}
status: {state: ready}
`;
    const crd = await convert(input, '--to', 'crd');
    expect({ code: crd.code, err: crd.err }).toEqual({ code: 0, err: '' });
    expect(parse(crd.out, { version: '1.1' })).toEqual({
      apiVersion: 'inference.svc.dev/v1alpha1',
      kind: 'SlotSpec',
      metadata: { name: 'img', namespace: 'ai', labels: { team: 'vision' }, annotations: { note: 'on' } },
      spec: { model: { default: 'x' } },
    });
    expect((await convert(input, '--to', 'crd', '-n', 'prod')).out).toContain('namespace: prod\n');
    const toml = await convert(input, '--to', 'toml');
    expect(toml).toMatchObject({ code: 0, out: '[model]\ndefault = "x"\n' });
    expect(toml.err).toBe('Slot "img": not converted: metadata.namespace, metadata.labels, metadata.annotations\n');
  });

  test('requires a namespace for TOML if there are several', async () => {
    const input = `${slot('name: img, namespace: a', 'model: {default: x}')}---\n${slot('name: img, namespace: b', 'model: {default: z}')}`;
    expect(await convert(input, '--to', 'toml')).toMatchObject({
      code: 64,
      err: expect.stringContaining('the slots have several: "a", "b"\nhint: Choose one with -n'),
    });
    expect(await convert(input, '--to', 'toml', '-n', 'b')).toMatchObject({ code: 0, out: '[model]\ndefault = "z"\n' });
    expect(await convert(input, '--to', 'toml', '-n', 'c')).toMatchObject({ code: 1 });
    expect((await convert(input, '--to', 'crd')).out.match(/namespace: [ab]/g)).toEqual(['namespace: a', 'namespace: b']);
  });

  test.each(['{size: 20Gi, className: fast}', '{claimName: models}', '{hostPath: /models}'])(
    'keeps every key that only a cluster uses: %s',
    async (storage) => {
      const spec = `provider: gguf
  model: {default: x}
  replicas: 3
  nodeSelector: {kubernetes.io/arch: amd64, camelCase_key: "1"}
  tolerations: [{key: gpu, operator: Equal, value: "yes", effect: NoExecute, tolerationSeconds: 60}, {operator: Exists}]
  storage: ${storage}
  serviceAccountName: runner`;
      const input = `${HEAD}metadata: {name: mine}\nspec:\n  ${spec}\n`;
      const toml = await convert(input, '--to', 'toml');
      expect(toml).toMatchObject({ code: 0, err: '' });
      await writeFile(path.join(dir, 'mine.toml'), toml.out);
      const { out } = await svcctl(['convert', '-f', path.join(dir, 'mine.toml'), '--to', 'crd']);
      expect(parse(out)).toEqual(parse(input));
    },
  );
});
