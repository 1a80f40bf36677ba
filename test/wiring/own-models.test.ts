/** Models that programs bring themselves: asked of the image that is on this machine, and offered where the machine can run them. */
import { describe, expect, test } from '@jest/globals';
import { npu } from '../../src/providers/npu/npu.ts';
import { ok } from '../../src/schema/words/failure.ts';
import { ModelId } from '../../src/schema/words/names.ts';
import { createOwnModels, type OwnModelDeps } from '../../src/wiring/own-models.ts';
import { modelList } from '../support/flm/model-list.ts';
import { recordedHardware, type RecordedMachine } from '../support/hardware/recorded-machines.ts';

const REFERENCE = 'localhost/svc-toolbox-npu:v1';

function create({ present = true, machine = 'strix-halo-128gb' }: { readonly present?: boolean; readonly machine?: RecordedMachine } = {}) {
  const printed: (readonly string[])[] = [];
  const clock = { ms: 0 };
  const deps: OwnModelDeps = {
    providers: { npu },
    programs: undefined,
    runtime: {
      observe: async (images) => ok({ workloads: [], images: images.map(({ reference }) => ({ reference, present })) }),
      async print(_image, argv) {
        printed.push(argv);
        return ok(modelList());
      },
    },
    imagesOf: () => [{ reference: REFERENCE }],
    env: {},
    hardware: async () => recordedHardware(machine),
    now: () => clock.ms,
  };
  return { own: createOwnModels(deps), printed, clock };
}

describe('createOwnModels()', () => {
  test('asks the image once, and again after a while', async () => {
    const { own, printed, clock } = create();
    for (const id of ['llama3.2:1b', 'whisper-v3:turbo']) expect(await own.find(ModelId.parse(id))).toMatchObject({ kind: 'present' });
    expect(printed).toEqual([['flm', 'list', '--json', '--quiet']]);
    clock.ms += 3_600_000;
    expect(await own.names()).toHaveLength(5);
    expect(printed).toHaveLength(2);
  });

  test('says of a model without weights how to get it, and nothing of one that the program does not know', async () => {
    const { own } = create();
    expect(await own.find(ModelId.parse('qwen3:4b'))).toMatchObject({
      kind: 'missing',
      message: expect.stringContaining('flm pull qwen3:4b'),
    });
    expect(await own.find(ModelId.parse('a.gguf'))).toBeUndefined();
  });

  test('starts nothing where the image is not on this machine: no models', async () => {
    const { own, printed } = create({ present: false });
    expect([await own.list(), await own.names(), printed]).toEqual([[], [], []]);
  });

  test('offers models only where the machine has the device', async () => {
    expect((await create().own.list()).map(({ id, provider }) => [id, provider])).toContainEqual(['llama3.2:1b', 'npu']);
    expect(await create({ machine: 'w7900' }).own.list()).toEqual([]);
  });
});
