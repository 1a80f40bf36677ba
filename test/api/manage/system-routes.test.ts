import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import { request } from 'undici';
import { SlotName } from '../../../src/schema/words/names.ts';
import { recordedHardware } from '../../support/hardware/recorded-machines.ts';
import { OPEN_ROUTES } from '../../support/open-routes.ts';
import { startWorld, type World } from './world.ts';

let world: World;
beforeEach(async () => {
  world = await startWorld();
});
afterEach(() => world.close());

const get = async (path: string) => {
  const response = await fetch(world.url + path);
  return { status: response.status, body: JSON.parse(await response.text()) };
};

describe('the route table', () => {
  test('requires no credential for exactly these routes', () => {
    const open = world.routes.filter(({ access }) => access === 'open').map(({ method, path }) => `${method} ${path}`);
    expect(open.toSorted()).toEqual(OPEN_ROUTES.toSorted());
  });

  test('has an access class for every route, and allows changes to admin only', () => {
    for (const { method, path, access } of world.routes) {
      expect(['open', 'any', 'read', 'v1', 'all', 'admin']).toContain(access);
      if (method !== 'GET' && access !== 'open') expect(`${path} ${access}`).toBe(`${path} admin`);
    }
  });

  test('has each method and path once', () => {
    const rows = world.routes.map(({ method, path }) => `${method} ${path}`);
    expect(new Set(rows).size).toBe(rows.length);
  });
});

describe('/api/health/system', () => {
  test('is ok while passes finish, and 503 in the documented shape if none has for too long', async () => {
    expect(await get('/api/health/system')).toMatchObject({
      status: 200,
      body: { status: 'ok', version: '1.2.3', last_pass_age_seconds: 0 },
    });
    world.lastPassAgeMs = 59_000;
    expect((await get('/api/health/system')).status).toBe(200);
    world.lastPassAgeMs = 61_000;
    expect(await get('/api/health/system')).toMatchObject({
      status: 503,
      body: { status: 'failing', error: { code: 'server.stalled', origin: 'gateway', param: null } },
    });
  });
});

describe('/api/health/ready', () => {
  test('is 503 until the first board is published, and ok from then on', async () => {
    const answer = await get('/api/health/ready');
    expect(answer).toMatchObject({ status: 503, body: { status: 'starting', error: { code: 'server.starting', origin: 'gateway' } } });
    world.save(SlotName.parse('primary'), '[model]\ndefault = "a"\n');
    await world.idle();
    expect(await get('/api/health/ready')).toEqual({ status: 200, body: { status: 'ok' } });
  });
});

describe('/api/status', () => {
  test('has one line per slot with its traffic', async () => {
    const name = SlotName.parse('primary');
    world.save(name, '[model]\ndefault = "a"\n');
    await world.idle();
    world.traffic.set(name, { inFlight: 2, parked: 7 });
    const { body } = await get('/api/status');
    expect(body).toMatchObject({ version: '1.2.3', runtime: 'in-memory', auth_enabled: false });
    expect(body.limits).toEqual({ shared: false, gateways: 1, problem: null });
    expect(body.slots).toEqual([
      {
        name: 'primary',
        state: 'ready',
        model: 'a',
        provider: 'gguf',
        backend: 'vulkan',
        ready: true,
        reason: 'ProbePassed',
        message: '',
        in_flight: 2,
        parked: 7,
        progress: null,
        totals: null,
      },
    ]);
  });
});

describe('/api/config/urls', () => {
  const urls = async (headers: Record<string, string>) => {
    const { statusCode, body } = await request(`${world.url}/api/config/urls`, { headers });
    return { status: statusCode, body: JSON.parse(await body.text()) };
  };

  test('are derived from the Host header, and from the protocol that a trusted proxy reports', async () => {
    await world.close();
    world = await startWorld({ env: { SVC_ALLOWED_HOSTS: 'box.local' } });
    expect((await urls({ host: 'box.local:8080' })).body).toMatchObject({
      openai_base_url: 'http://box.local:8080/v1',
      chat_url: 'http://box.local:3001/',
      source: 'host',
    });
    expect((await urls({ host: 'box.local', 'x-forwarded-proto': 'https' })).body.base_url).toBe('https://box.local/');
    expect((await urls({ host: '[::1]:9000' })).body.api_url).toBe('http://[::1]:9000/api');
  });

  test('are refused for an invalid Host header', async () => {
    for (const host of ['a/b', 'user@evil', 'a b', 'localhost:99999', '-a']) {
      expect(await urls({ host })).toMatchObject({ status: 400, body: { error: { code: 'request.invalid', param: 'Host' } } });
    }
  });

  test('are derived from SVC_PUBLIC_URL if it is set', async () => {
    await world.close();
    world = await startWorld({ env: { SVC_PUBLIC_URL: 'https://ai.example.org/svc/' } });
    expect((await urls({ host: 'localhost' })).body).toMatchObject({
      base_url: 'https://ai.example.org/svc/',
      chat_url: 'https://ai.example.org/svc/chat/',
      source: 'setting',
    });
  });

  test('name the origin of the chat page if it has one of its own', async () => {
    await world.close();
    world = await startWorld({ env: { SVC_PUBLIC_URL: 'https://gpu.local', SVC_CHAT_URL: 'https://gpu.local:3443/' } });
    expect((await urls({ host: 'localhost' })).body).toMatchObject({
      base_url: 'https://gpu.local/',
      chat_url: 'https://gpu.local:3443/',
    });
  });
});

describe('install, features, auth', () => {
  test('install/complete marks the installation as complete', async () => {
    expect((await get('/api/install/state')).body.complete).toBe(false);
    expect((await fetch(`${world.url}/api/install/complete`, { method: 'POST' })).status).toBe(200);
    expect((await get('/api/install/state')).body.complete).toBe(true);
  });

  test('features, auth/status and auth/login answer without a credential', async () => {
    expect((await get('/api/features')).body).toEqual({ features: { authentication: false } });
    expect((await get('/api/auth/status')).body).toEqual({ auth_enabled: false, mode: 'off', methods: [], scope: 'admin' });
    const login = await fetch(`${world.url}/api/auth/login`, {
      method: 'POST',
      body: '{"user":"a"}',
      headers: { 'content-type': 'application/json' },
    });
    expect(login.status).toBe(200);
  });
});

describe('inventory', () => {
  test('models, providers, hardware and pulls have the documented shapes, with null for unknown values', async () => {
    expect((await get('/api/models')).body.models[0]).toMatchObject({
      id: 'demo-fox',
      kind: 'chat',
      size_bytes: 300_000,
      min_memory_bytes: null,
      min_vram_bytes: null,
      context: null,
      quantization: null,
      parameters: null,
      pooling: null,
      experts: null,
      abilities: null,
      verified: true,
      reason: null,
    });
    expect((await get('/api/models/qwen-coder')).body).toMatchObject({
      kind: 'coder',
      context: 32_768,
      quantization: 'Q4_K_M',
      parameters: 30.5e9,
      experts: { total: 128, active: 8 },
      abilities: ['tools', 'vision'],
      verified: false,
      files: [
        { path: 'catalogue/m/0/m.gguf', size_bytes: 5e9, url: 'https://example.org/m.gguf', present: false },
        { sha256: null, url: null, size_bytes: null, present: true },
      ],
      sources: ['https://example.org'],
    });
    expect((await get('/api/providers')).body.providers[0]).toMatchObject({
      kind: 'gguf',
      default_backend: 'cpu',
      available: true,
      availability: [{ backend: 'cpu' }],
    });
    expect((await get('/api/pulls')).body).toEqual({ pulls: [] });
  });

  test('the hardware has every GPU and NPU with its memory and what it can be used for', async () => {
    const hardware = recordedHardware('strix-halo-128gb');
    world.hardware = { memoryTotalBytes: 8e9, memoryAvailableBytes: undefined, hardware };
    const { body } = await get('/api/hardware');
    expect(body).toMatchObject({
      source: 'machine',
      recording: null,
      cpu: { threads: 32, cores: 16 },
      memory_total_bytes: 8e9,
      memory_available_bytes: null,
      devices_hidden: null,
    });
    expect(body.devices).toEqual([
      expect.objectContaining({
        id: 'gpu0',
        backends: ['rocm', 'vulkan'],
        memory_total_bytes: 133_680_857_088,
        memory_dedicated_bytes: 536_870_912,
      }),
      expect.objectContaining({ id: 'npu0', kind: 'npu', backends: ['npu'], memory_dedicated_bytes: null, unavailable: [] }),
    ]);
  });

  test('the hardware says why a backend cannot be used, and leaves out what the driver does not report', async () => {
    world.hardware = { memoryTotalBytes: 8e9, memoryAvailableBytes: 4e9, hardware: recordedHardware('intel-graphics-and-nouveau') };
    expect((await get('/api/hardware')).body.devices[1]).toMatchObject({
      driver: 'nouveau',
      backends: [],
      unavailable: [{ backend: 'cuda', reason: 'the GPU uses the driver "nouveau" instead of "nvidia"' }, { backend: 'vulkan' }],
      memory_total_bytes: null,
    });
    world.hardware = { memoryTotalBytes: 8e9, memoryAvailableBytes: 4e9, hardware: recordedHardware('arc-a750') };
    expect((await get('/api/hardware')).body.devices[0]).toMatchObject({ memory_total_bytes: 8 * 1024 ** 3, memory_free_bytes: null });
  });

  test('the hardware says whose it is: of a recording, or in a cluster of nobody', async () => {
    const source = { kind: 'recording', file: '/machine.json', about: 'another machine' } as const;
    world.hardware = { memoryTotalBytes: 1, memoryAvailableBytes: 1, hardware: { ...recordedHardware('w7900'), source } };
    expect((await get('/api/hardware')).body).toMatchObject({
      source: 'recording',
      recording: { file: '/machine.json', about: 'another machine' },
    });
    world.hardware = { memoryTotalBytes: undefined, memoryAvailableBytes: undefined };
    expect((await get('/api/hardware')).body).toMatchObject({
      source: 'none',
      cpu: null,
      devices: [],
      devices_hidden: expect.stringContaining('kubectl describe nodes'),
    });
    expect((await get('/api/status')).body).toMatchObject({ hardware_source: 'machine' });
  });
});

describe('/api/openapi.json', () => {
  test('describes every route of the table, with its parameters and body', async () => {
    const { body } = await get('/api/openapi.json');
    const described = Object.entries<object>(body.paths).flatMap(([path, methods]) =>
      Object.keys(methods).map((method) => `${method.toUpperCase()} ${path}`),
    );
    const table = world.routes.map(({ method, path }) => `${method} ${path.replace(/:(\w+)/g, '{$1}')}`);
    expect(described.toSorted()).toEqual(table.toSorted());
    expect(body.paths['/api/slots/{name}/logs'].get.parameters.map((parameter: { name: string }) => parameter.name)).toEqual([
      'name',
      'follow',
      'tail',
    ]);
    expect(body.paths['/api/slots/{name}/load'].post.requestBody.content['application/json'].schema.properties.model.pattern).toContain(
      'A-Za-z0-9',
    );
    expect(body.paths['/api/status'].get.security).toEqual([]);
    expect(JSON.stringify(body)).not.toContain('$schema');
  });
});
