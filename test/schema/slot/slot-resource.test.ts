import { describe, expect, test } from '@jest/globals';
import fc from 'fast-check';
import { SLOT_VERSIONS } from '../../../src/schema/words/name-rules.ts';
import { SlotName } from '../../../src/schema/words/names.ts';
import { fromResource, toResource } from '../../../src/schema/slot/slot-resource.ts';
import { parseSlot } from '../../../src/schema/slot/slot-spec.ts';
import { rewriteSlotText } from '../../../src/host/slots/decide/edit-slot.ts';
import { parseSlotText } from '../../../src/host/slots/decide/parse-slot-text.ts';
import { slotDocuments } from '../slot-arbitrary.ts';

const name = SlotName.parse('mine');

describe('a slot as a file and as a resource', () => {
  test('is converted in both directions without loss, for any slot', () => {
    fc.assert(
      fc.property(slotDocuments, (document) => {
        const text = rewriteSlotText('', document);
        if (!text.ok) throw new Error('No text');
        const read = parseSlotText(name, text.text, 'mine.toml');
        if (!read.ok) throw new Error(JSON.stringify(read.problems));
        expect(read.document).toEqual(document);
        const resource: unknown = JSON.parse(JSON.stringify(toResource(name, read.document)));
        const back = fromResource(resource);
        expect(back).toEqual({ ok: true, name, document, dropped: [] });
        expect(parseSlot(name, back.ok ? back.document : undefined)).toEqual({ ok: true, spec: read.spec });
        expect(rewriteSlotText('', back.ok ? back.document : undefined)).toEqual(text);
      }),
      { numRuns: 1000 },
    );
  });

  test.each(SLOT_VERSIONS)('is the same slot as a resource of the version "%s"', (version) => {
    const resource = toResource(name, { model: { default: 'a.gguf' } }, version);
    expect(resource.apiVersion).toBe(`inference.svc.dev/${version}`);
    expect(fromResource(resource)).toEqual({ ok: true, name, document: { model: { default: 'a.gguf' } }, dropped: [] });
  });

  test('lists the fields that a file cannot hold', () => {
    const resource = { ...toResource(name, {}), metadata: { name, namespace: 'models', labels: {} }, status: {} };
    expect(fromResource(resource)).toMatchObject({ ok: true, dropped: ['metadata.namespace', 'metadata.labels', 'status'] });
  });

  test.each([
    [null, []],
    [{}, ['apiVersion']],
    [{ apiVersion: 'inference.svc.dev/v1', kind: 'SlotSpec' }, ['apiVersion']],
    [{ apiVersion: 'inference.svc.dev/v1alpha1', kind: 'Slot' }, ['kind']],
    [{ apiVersion: 'inference.svc.dev/v1alpha1', kind: 'SlotSpec', metadata: { name: '../x' } }, ['metadata', 'name']],
  ])('refuses %j', (resource, path) => {
    expect(fromResource(resource)).toMatchObject({ ok: false, problems: [{ path }] });
  });
});
