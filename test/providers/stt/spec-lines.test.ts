/** The lines of the specification about the speech-to-text runtime, one test for each. */
import { expect, test } from '@jest/globals';
import { INFERENCE_PATHS, DEFAULT_SLOT_OF_CAPABILITY } from '../../../src/gateway/route/decide/inference-paths.ts';
import { stt } from '../../../src/providers/stt/stt.ts';
import { DEFAULT_PROVIDER_OF_SLOT, PROVIDER_KINDS, BACKENDS } from '../../../src/schema/slot/provider-kinds.ts';
import { SlotName } from '../../../src/schema/words/names.ts';
import { parseSlot } from '../../../src/schema/slot/slot-spec.ts';
import { PROVIDERS } from '../../../src/providers/registry.ts';
import { RECORDED_MACHINES, recordedHardware } from '../../support/hardware/recorded-machines.ts';
import { specOf } from '../../support/providers/odd-models.ts';

const STT = SlotName.parse('stt');

test('Speech-to-text runtime | CPU only', () => {
  expect(PROVIDER_KINDS.stt.backends).toEqual(['cpu']);
  for (const backend of BACKENDS) expect(stt.devices(backend)).toEqual([]);
  expect(stt.estimateMemory(STT, specOf('stt'), { ...MODEL, sizeBytes: 1000 }).deviceBytes).toBe(0);
});

test('Speech-to-text runtime | /v1/audio/transcriptions', () => {
  const paths = INFERENCE_PATHS.filter(({ capability }) => capability === 'transcription').map(({ path }) => path);
  expect(paths).toEqual(['/v1/audio/transcriptions']);
  expect(DEFAULT_SLOT_OF_CAPABILITY.transcription).toBe('stt');
  expect(stt.infer({ method: 'POST', path: '/v1/audio/transcriptions', capability: 'transcription' }, ['transcription'])).toEqual({
    kind: 'forward',
    path: '/v1/audio/transcriptions',
  });
});

test('All five are first-class: speech-to-text is one of the providers of this build, and the default of its slot', () => {
  expect(PROVIDERS.stt).toBe(stt);
  expect(DEFAULT_PROVIDER_OF_SLOT['stt']).toBe('stt');
});

test('The speech-to-text runtime has only a CPU execution provider: its fan-out is pinned to cpu, so no other backend is ever advertised', () => {
  for (const machine of RECORDED_MACHINES) expect(stt.rankBackends(recordedHardware(machine))).toEqual([{ backend: 'cpu' }]);
  expect(stt.rankBackends(undefined)).toEqual([{ backend: 'cpu' }]);
  for (const backend of BACKENDS) {
    const parsed = parseSlot(STT, { backend, model: { default: 'm' } });
    if (backend === 'cpu') expect(parsed.ok).toBe(true);
    else expect(parsed).toMatchObject({ ok: false, problems: [{ path: ['backend'], message: expect.stringContaining('"cpu"') }] });
  }
});

const MODEL = { id: specOf('stt').model.default, hostPath: '/models/m', provider: 'stt' } as const;
