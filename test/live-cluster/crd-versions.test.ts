/** The way of SlotSpecs from one stored version to the next, with a copy of the definition, because that of the tests is in use. */
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { parse, stringify } from 'yaml';
import { eventually } from '../support/eventually.ts';
import { describeWithCluster, kubectl } from '../support/require/require-cluster.ts';

const NAMESPACE = `svc-versions-${process.pid}`;
const MODEL = { default: 'a.gguf' };
const inNamespace = async (args: readonly string[], input?: string) => kubectl(['--namespace', NAMESPACE, ...args], input);
const SLOT = JSON.stringify({ apiVersion: 'moved.svc.dev/v1alpha1', kind: 'MovedSlot', metadata: { name: 'a' }, spec: { model: MODEL } });

describeWithCluster('The versions of SlotSpec', () => {
  beforeAll(async () => void (await kubectl(['create', 'namespace', NAMESPACE])), 60_000);
  afterAll(async () => void (await kubectl(['delete', 'namespace', NAMESPACE, '--timeout=120s'])), 180_000);

  test('go over to "v1beta1" as documented: stored anew, then without "v1alpha1"', async () => {
    const text = await readFile(join(import.meta.dirname, '../../crds/slotspecs.inference.svc.dev.yaml'), 'utf8');
    const copy = parse(text);
    copy.metadata.name = 'movedslots.moved.svc.dev';
    copy.spec.group = 'moved.svc.dev';
    copy.spec.names = { kind: 'MovedSlot', listKind: 'MovedSlotList', plural: 'movedslots', singular: 'movedslot' };
    const install = async () => await kubectl(['apply', '--server-side', '--validate=false', '--filename', '-'], stringify(copy));
    const all = async (version: string) => await kubectl(['get', `movedslots.${version}.moved.svc.dev`, '--all-namespaces', '-o', 'json']);
    const stored = async (): Promise<unknown> =>
      JSON.parse(await kubectl(['get', 'crd', copy.metadata.name, '-o', 'json'])).status?.storedVersions;
    const setStored = async () =>
      await kubectl([
        'patch',
        'crd',
        copy.metadata.name,
        '--subresource=status',
        '--type=merge',
        '-p',
        '{"status":{"storedVersions":["v1beta1"]}}',
      ]);
    await install();
    try {
      const creates = async () => await inNamespace(['create', '--validate=false', '--filename', '-'], SLOT).catch(() => undefined);
      await eventually('a slot of this release', async () => (await creates()) !== undefined, 60_000);
      // The definition of the next release, with a gateway of this one, which reads and writes the version of this one.
      copy.spec.versions = copy.spec.versions.map((each: { readonly name: string }) => ({ ...each, storage: each.name === 'v1beta1' }));
      await install();
      await eventually('both are stored', async () => JSON.stringify(await stored()) === '["v1alpha1","v1beta1"]', 60_000);
      expect(JSON.parse(await all('v1alpha1')).items).toHaveLength(1);
      await kubectl(['replace', '--validate=false', '--filename', '-'], await all('v1beta1'));
      await setStored();
      // The one after it no longer serves "v1alpha1".
      copy.spec.versions = copy.spec.versions.filter((each: { readonly name: string }) => each.name === 'v1beta1');
      await install();
      expect(await stored()).toEqual(['v1beta1']);
      expect(JSON.parse(await all('v1beta1')).items).toMatchObject([{ metadata: { name: 'a' }, spec: { model: MODEL } }]);
    } finally {
      await kubectl(['delete', 'crd', copy.metadata.name, '--timeout=60s']);
    }
  }, 240_000);
});
