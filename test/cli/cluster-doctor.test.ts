import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from '@jest/globals';
import { SlotName } from '../../src/schema/words/names.ts';
import { startWorld, type World } from '../api/manage/world.ts';
import { NAMESPACE, startCluster, type Cluster } from './cluster-fixture.ts';

const REVIEWS = 'POST /apis/authorization.k8s.io/v1/selfsubjectaccessreviews';
const DEFINITION = 'GET /apis/inference.svc.dev/v1alpha1';
let world: World;
let cluster: Cluster;
beforeAll(async () => {
  world = await startWorld();
  world.save(SlotName.parse('primary'), '[model]\ndefault = "a"\n');
  await world.idle();
});
afterAll(() => world.close());
beforeEach(async () => {
  cluster = await startCluster();
  cluster.answers.set('GET /version', () => ({ gitVersion: 'v1.34.1', major: '1', minor: '34+' }));
  cluster.answers.set(REVIEWS, () => ({ status: { allowed: true } }));
  cluster.answers.set('GET /api/v1/nodes', () => ({
    items: [
      {
        metadata: { name: 'n1', labels: { 'inference.svc.dev/backend-npu': 'true' } },
        status: { allocatable: { cpu: '8', 'nvidia.com/gpu': '2' } },
      },
      { metadata: { name: 'n2' }, status: { allocatable: { 'nvidia.com/gpu': '1' } } },
    ],
  }));
  cluster.answers.set(DEFINITION, () => ({ resources: ['slotspecs', 'slotspecs/status', 'slotspecs/scale'].map((name) => ({ name })) }));
  cluster.addPod('svc-0', world.url);
  cluster.lead('svc-0', new Date().toISOString());
});
afterEach(() => cluster.close());

async function doctor(args: readonly string[] = []) {
  const { code, out } = await cluster.run(['doctor', '-o', 'json', ...args]);
  const checks: { name: string; result: string; found: string; hint: string }[] = JSON.parse(out).checks;
  return { code, checks, check: (name: string) => checks.find((entry) => entry.name === name) };
}

describe('svcctl doctor with a cluster', () => {
  test('reports no problem with a healthy installation, and describes it', async () => {
    const { code, checks, check } = await doctor();
    expect(checks.filter(({ result }) => result !== 'ok')).toEqual([]);
    expect(code).toBe(0);
    expect(check('cluster')?.found).toMatch(/^v1\.34\.1 at "http:.*", namespace "models"$/);
    expect(check('nodes')?.found).toBe('2; 3 × nvidia.com/gpu; backend-npu on 1');
    expect(check('replicas')?.found).toBe('1 of 1 ready');
    expect(check('answer')?.found).toMatch(/^svc \S+ with 1 slot$/);
    expect(check('images')?.found).toBe('Known for gguf/vulkan');
  });

  test('fails if the CRD is missing or outdated, and says how to install it', async () => {
    cluster.answers.set(DEFINITION, () => ({ resources: [] }));
    expect((await doctor()).check('definition')).toMatchObject({
      result: 'fail',
      hint: expect.stringContaining('kubectl apply --server-side'),
    });
    cluster.answers.set(DEFINITION, () => ({ resources: [{ name: 'slotspecs' }, { name: 'slotspecs/status' }] }));
    expect((await doctor()).check('definition')).toMatchObject({ result: 'fail', found: expect.stringContaining('no scale') });
  });

  test('fails if there is no service, no leader, or the leader no longer renews its Lease', async () => {
    const none = await doctor(['-n', 'empty']);
    expect({ code: none.code, result: none.check('service')?.result }).toEqual({ code: 1, result: 'fail' });
    cluster.lead('');
    expect((await doctor()).check('service')).toMatchObject({ result: 'fail', found: 'No leader' });
    cluster.lead('svc-0', new Date(Date.now() - 60_000).toISOString());
    expect((await doctor()).check('service')).toMatchObject({
      result: 'fail',
      found: expect.stringMatching(/renewed its Lease \d\d+ s ago/),
    });
  });

  test('names missing rights, and what is impossible without them', async () => {
    const refuse = (refused: readonly string[]) => (body: string) => {
      const { verb, resource, subresource = '' } = JSON.parse(body).spec.resourceAttributes;
      return { status: { allowed: !refused.includes(`${verb} ${resource} ${subresource}`.trim()) } };
    };
    cluster.answers.set(REVIEWS, refuse(['create pods proxy', 'delete slotspecs']));
    expect((await doctor()).check('rights')).toMatchObject({
      result: 'warn',
      found: 'svcctl can read but not change slots: missing "create" "pods/proxy"',
      hint: `Get these rights in namespace "${NAMESPACE}"`,
    });
    cluster.answers.set(REVIEWS, refuse(['get leases']));
    expect((await doctor()).check('rights')).toMatchObject({ result: 'fail', found: expect.stringContaining('"get" "leases"') });
  });

  test('does not fail on objects that it may not read', async () => {
    cluster.forbid((_method, url) => url.includes('/nodes') || url.includes('/pods?'));
    const { code, check } = await doctor();
    expect(code).toBe(0);
    expect(check('nodes')).toMatchObject({ result: 'ok', found: expect.stringContaining('may not list nodes') });
    expect(check('replicas')).toMatchObject({ result: 'ok', found: expect.stringContaining('may not list pods') });
  });

  test('warns of counts of callers that are not shared', async () => {
    world.limits = { shared: false, gateways: 3, problem: 'connect ECONNREFUSED' };
    expect((await doctor()).check('answer')).toMatchObject({
      result: 'warn',
      found: expect.stringContaining('each of 3 gateways enforces'),
    });
    world.limits = { shared: true, gateways: 3, problem: null };
    expect((await doctor()).check('answer')).toMatchObject({ result: 'ok' });
  });

  test('stops if the API server does not answer', async () => {
    await cluster.goDown();
    const { code, checks, check } = await doctor();
    expect({ code, names: checks.map(({ name }) => name) }).toEqual({ code: 1, names: ['node', 'cluster'] });
    expect(check('cluster')?.found).toContain('connection refused');
  });
});
