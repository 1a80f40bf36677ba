/** The lines of the specification about the NPU, each by its name. What a whole service does with them is in test/e2e/npu.test.ts. */
import { readFile } from 'node:fs/promises';
import { describe, expect, test } from '@jest/globals';
import { describeAvailability } from '../../../src/providers/decide/rank-backends.ts';
import { npu } from '../../../src/providers/npu/npu.ts';
import type { ProbeIo } from '../../../src/providers/provider.ts';
import { PROVIDERS } from '../../../src/providers/registry.ts';
import { INFERENCE_PATHS } from '../../../src/gateway/route/decide/inference-paths.ts';
import { makeTemplate, workloadOf } from '../../../src/reconciler/decide/facts/workload.ts';
import { containerSpec } from '../../../src/host/podman/decide/podman-container.ts';
import { SlotName } from '../../../src/schema/words/names.ts';
import { PROVIDER_KINDS } from '../../../src/schema/slot/provider-kinds.ts';
import { recordedHardware } from '../../support/hardware/recorded-machines.ts';
import { modelList } from '../../support/flm/model-list.ts';
import { npuModel, npuSpec } from '../../support/flm/npu-gateway.ts';

const NAME = SlotName.parse('npu');
const PODMAN = { kind: 'podman', images: true, network: 'published', modelsTarget: '/models' } as const;
const WITH_NPU = recordedHardware('strix-halo-128gb');

function templateOf(spec = npuSpec(), model = npuModel()) {
  const image = { reference: 'localhost/svc-toolbox-npu:v1' };
  return makeTemplate({ name: NAME, spec, provider: npu, model, image, traits: PODMAN, modelsRoot: '/var/lib/svc/models' });
}

test('NPU runtime | NPU (opt-in) | chat, embed and ASR multiplexed on the NPU', () => {
  expect(PROVIDER_KINDS.npu).toEqual({ backends: ['npu'], defaultBackend: 'npu', serves: ['chat', 'embedding', 'transcription'] });
  expect(npu.capabilities(NAME, npuSpec(), npuModel())).toEqual(['chat', 'embedding', 'transcription']);
});

test('All five are first-class: the NPU provider is one of those of this build', () => expect(PROVIDERS.npu).toBe(npu));

test('`health()` is a cheap probe: it asks for nothing that the NPU has to compute, and a server that computes is healthy', async () => {
  const asked: string[] = [];
  const healthOf = async (status: object) => {
    const io: ProbeIo = {
      async request(_endpoint, { method, path }) {
        asked.push(`${method} ${path}`);
        return { status: 200, body: JSON.stringify(status) };
      },
    };
    const slot = { name: NAME, spec: npuSpec(), model: npuModel() };
    return npu.health({ host: '127.0.0.1', port: 8086 }, io, slot, new AbortController().signal);
  };
  const idle = { npu_available: true, active_requests: 0, message: 'NPU is available' };
  expect(await healthOf(idle)).toEqual({ kind: 'passing' });
  expect(await healthOf({ ...idle, npu_available: false, active_requests: 1 })).toEqual({ kind: 'passing' });
  expect(new Set(asked)).toEqual(new Set(['GET /api/npu/status']));
});

test('`infer()`: one slot answers chats, embeddings and transcriptions, and refuses what else there is', () => {
  const served = { spec: npuSpec(), model: npuModel() };
  const own = npu.capabilities(NAME, served.spec, served.model);
  const kinds = INFERENCE_PATHS.map(({ path, capability }) => [path, npu.infer({ method: 'POST', path, capability }, own, served).kind]);
  expect(kinds.flatMap(([path, kind]) => (kind === 'translate' ? [path] : []))).toEqual(
    expect.arrayContaining(['/v1/chat/completions', '/v1/embeddings', '/v1/audio/transcriptions']),
  );
  expect(Object.fromEntries(kinds)).toMatchObject({ '/v1/images/generations': 'refuse', '/v1/audio/speech': 'refuse' });
});

describe('The NPU provider is advertised only when both the NPU driver stack and a local NPU toolbox image are detected', () => {
  const here = { kind: 'images', backends: ['npu'] } as const;
  const notHere = { kind: 'images', backends: [], absent: ['npu'] } as const;

  test('both are there', () => {
    expect(describeAvailability(npu, here, WITH_NPU)).toMatchObject({ available: true, reason: 'Runs in toolbox images for "npu"' });
  });

  test('the image is not on this machine', () => {
    const { available, reason } = describeAvailability(npu, notHere, WITH_NPU);
    expect([available, reason]).toEqual([
      false,
      '"npu" is not available, because its toolbox image is not on this machine; make a device available, or build a toolbox image',
    ]);
  });

  test.each([
    ['nothing is known of the machine', undefined, 'the devices of this machine are not known yet'],
    [
      'its devices are hidden',
      { ...recordedHardware('w7900'), devices: [], devicesHidden: 'the service runs in a container' },
      'the service runs in a container',
    ],
  ])('%s: what is not seen counts as absent', (_what, hardware, why) => {
    const { available, reason } = describeAvailability(npu, here, hardware);
    expect([available, reason]).toEqual([
      false,
      `"npu" is not available, because ${why}; make a device available, or build a toolbox image`,
    ]);
    // Slots that say so start all the same: only what is offered needs proof.
    expect(npu.rankBackends(hardware)).toEqual([{ backend: 'npu' }]);
  });

  test('its program finds fault with the machine', () => {
    const npuOnly = 'locked memory is limited to 8388608 bytes';
    const programs = { npu: { name: '"flm validate"', backends: [], unavailable: { npu: npuOnly } } };
    const { reason } = describeAvailability(npu, here, { ...WITH_NPU, programs });
    expect(reason).toContain(`because ${npuOnly};`);
  });

  test('in a cluster, a resource stands for the NPUs of the nodes', () => {
    expect(describeAvailability(npu, here, undefined, { rocm: 'amd.com/gpu' })).toMatchObject({
      available: false,
      reason: expect.stringContaining('no extended resource stands for NPUs: name it in "SVC_GPU_RESOURCES"'),
    });
    expect(describeAvailability(npu, here, undefined, { npu: 'amd.com/npu' })).toMatchObject({ available: true });
  });

  test('the machine has no NPU, or one without its driver', () => {
    const none = describeAvailability(npu, here, recordedHardware('w7900'));
    expect([none.available, none.reason]).toEqual([
      false,
      '"npu" is not available, because this machine has no NPU; make a device available, or build a toolbox image',
    ]);
    const devices = WITH_NPU.devices.map((device) =>
      device.kind === 'npu'
        ? { ...device, backends: [], unavailable: { npu: 'no driver is loaded for the NPU; it needs "amdxdna"' } }
        : device,
    );
    expect(describeAvailability(npu, here, { ...WITH_NPU, devices }).reason).toMatch(/it needs "amdxdna" \(npu0/);
  });
});

test('the unit and the Quadlet let what they start lock memory, as a server of an NPU needs more than the usual 8 MiB', async () => {
  for (const file of ['installer/templates/svc-api.service', 'installer/quadlet/svc.container'])
    expect(await readFile(file, 'utf8')).toMatch(/^\[Service\]$[^]*^LimitMEMLOCK=infinity$/m);
});

describe('The NPU toolbox image bundles the runtime inside the image, so no host bind-mount is needed. Its default port is 8086', () => {
  test('the plan of a start has no mounts, the devices, the limits and the port', () => {
    const template = templateOf();
    expect(template).toMatchObject({ mounts: [], devices: ['/dev/accel'], containerPort: 8086 });
    const workload = workloadOf({ name: NAME, spec: npuSpec(), generation: 1, problems: [] }, template, 21_000, new Set());
    const container = containerSpec(workload, { instance: 'svc', rootless: false, deviceGroups: [44], ambient: [] });
    expect(container).toMatchObject({
      image: 'localhost/svc-toolbox-npu:v1',
      entrypoint: ['flm'],
      mounts: [{ type: 'tmpfs', destination: '/tmp' }],
      devices: [{ path: '/dev/accel' }],
      groups: ['44'],
      portmappings: [{ host_ip: '127.0.0.1', host_port: 21_000, container_port: 8086 }],
      cap_drop: ['ALL'],
    });
    expect(container['r_limits']).toContainEqual(expect.objectContaining({ type: 'memlock' }));
  });

  test('`start_cmd()` and `build_env()` name the model, where to listen and what is loaded beside it', () => {
    const slot = { name: NAME, spec: npuSpec('llama3.2:1b', { context: 8192 }), model: npuModel(), modelPath: 'llama3.2:1b' };
    expect(npu.startCmd({ ...slot, listen: { host: '0.0.0.0', port: 8086 } }).join(' ')).toBe(
      'flm serve llama3.2:1b --host 0.0.0.0 --port 8086 --asr 1 --embed 1 --socket 256 --q-len 128 --cors 0 --ctx-len 8192',
    );
    expect(npu.buildEnv({ ...slot, listen: { host: '0.0.0.0', port: 8086 } })).toMatchObject({ FLM_DISABLE_UPDATE_CHECK: '1' });
  });

  test('a flag of the slot takes the place of the one of the provider, because the program refuses two', () => {
    const spec = npuSpec('llama3.2:1b', { args: ['--asr', '0', '-q', '5'] });
    const argv = npu.startCmd({ name: NAME, spec, model: npuModel(), modelPath: 'llama3.2:1b', listen: { host: '127.0.0.1', port: 1 } });
    expect(argv.filter((each) => each === '--asr' || each === '--q-len' || each === '-q')).toEqual(['--asr', '-q']);
    expect(npu.capabilities(NAME, spec, npuModel())).toEqual(['chat', 'embedding']);
  });
});

describe('The NPU provider has its own model namespace. Available tags come from the runtime’s JSON listing of its bundled model list', () => {
  test('tags are those of the list, and those whose weights are not there say how to get them', () => {
    const listed = npu.ownModels?.parse(modelList()) ?? [];
    expect(listed.map(({ id, missing }) => [id, missing === undefined])).toEqual([
      ['llama3.2:1b', true],
      ['qwen3:4b', false],
      ['gemma3:4b', false],
      ['embed-gemma:300m', true],
      ['whisper-v3:turbo', true],
    ]);
    expect(listed[1]?.missing).toMatch(/; fetch them with "flm pull qwen3:4b"/);
  });

  test('arbitrary GGUF files cannot run through it: no file of the store is one of its models', () => {
    for (const name of ['a.gguf', 'model.q4nx', 'llama3.2:1b']) {
      expect(npu.models.recognize({ name })).toBeUndefined();
      expect(npu.models.recognize({ name: 'x', names: [name] })).toBeUndefined();
    }
    const gguf = { ...npuModel(), provider: 'gguf' } as const;
    expect(npu.capabilities(NAME, npuSpec(), gguf)).toEqual([]);
  });

  test('what is loaded beside the model for chats is only what is there, as the server would download it', () => {
    const alone = npuModel('llama3.2:1b', ['llama3.2:1b']);
    expect(npu.capabilities(NAME, npuSpec(), alone)).toEqual(['chat']);
    const argv = npu.startCmd({ name: NAME, spec: npuSpec(), model: alone, modelPath: alone.id, listen: { host: '127.0.0.1', port: 1 } });
    expect(argv.join(' ')).toContain('--asr 0 --embed 0');
  });

  test.each([
    ['embed-gemma:300m', 'embedding', '--asr 0 --embed 1'],
    ['whisper-v3:turbo', 'transcription', '--asr 1 --embed 0'],
  ])('a slot of "%s" serves %s alone', (id, capability, flags) => {
    const model = npuModel(id);
    expect(npu.capabilities(NAME, npuSpec(id), model)).toEqual([capability]);
    const argv = npu.startCmd({ name: NAME, spec: npuSpec(id), model, modelPath: id, listen: { host: '127.0.0.1', port: 1 } });
    expect(argv.join(' ')).toContain(flags);
    expect(argv[2]).toBe('--host');
  });
});
