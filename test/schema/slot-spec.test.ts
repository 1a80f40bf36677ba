import { describe, expect, test } from '@jest/globals';
import { SlotName } from '../../src/schema/names.ts';
import { parseSlot } from '../../src/schema/slot-spec.ts';

describe('parseSlot()', () => {
  const primary = SlotName.parse('primary');

  test('fills in the defaults of a built-in slot', () => {
    const parsed = parseSlot(primary, { model: { default: 'a.gguf' } });
    expect(parsed).toMatchObject({
      ok: true,
      spec: { enabled: true, provider: 'gguf', backend: 'vulkan', lifecycle: { startTimeoutMs: 300_000 } },
    });
  });

  test('requires a provider if the name has no default', () => {
    const parsed = parseSlot(SlotName.parse('mine'), { model: { default: 'a.gguf' } });
    expect(parsed).toMatchObject({ ok: false, problems: [{ path: ['provider'] }] });
  });
});
