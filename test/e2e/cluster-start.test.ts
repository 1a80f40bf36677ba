/** The real service in cluster mode, started as a process against the fake API server. What only a real cluster can show is in `test/live-cluster`. */
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { z } from 'zod';
import { DEPLOYMENTS, LEASES, SLOT_SPECS } from '../../src/cluster/client/decide/resource-path.ts';
import { eventually } from '../support/eventually.ts';
import { startFakeKubeApi, type FakeKubeApi } from '../support/kube/fake-kube-api.ts';
import { createClusterController, type ClusterController } from '../support/live-cluster/cluster-controller.ts';

const NAMESPACE = 'demo';
const SlotResource = z.looseObject({ status: z.looseObject({ state: z.string() }).optional() });

describe('The service in a cluster', () => {
  let api: FakeKubeApi;
  let controller: ClusterController;
  beforeAll(async () => {
    api = await startFakeKubeApi({ bookmarkMs: 500 });
    controller = await createClusterController({
      namespace: NAMESPACE,
      identity: 'svc-0',
      kubeconfig: api.kubeconfig(NAMESPACE),
      // After it has created the Lease, a replica waits for a part of this time before it leads.
      environment: { SVC_LEASE_DURATION: '5s' },
    });
    await controller.start();
  }, 60_000);
  afterAll(async () => {
    await controller?.dispose();
    await api?.close();
  });

  const metrics = async (): Promise<string> => (await fetch(`${controller.url}/api/metrics`)).text();

  test('acquires the Lease, and counts its requests to the API server', async () => {
    await eventually('the service leads', async () => (await metrics()).includes('\nsvc_leads 1\n'), 30_000);
    expect(api.objects(LEASES, NAMESPACE).map(({ metadata }) => metadata.name)).toContain('svc-controller');
    expect(await metrics()).toMatch(/svc_kube_requests_total\{verb="watch",resource="slotspecs\.inference\.svc\.dev",code="200"\} [1-9]/);
  });

  test('applies a Deployment for a new SlotSpec, and writes the status of the resource', async () => {
    api.put(SLOT_SPECS, NAMESPACE, { metadata: { name: 'primary' }, spec: { model: { default: 'demo-fox' }, backend: 'cpu' } });
    await eventually('the Deployment exists', () => api.objects(DEPLOYMENTS, NAMESPACE).length === 1);
    const state = () => SlotResource.parse(api.objects(SLOT_SPECS, NAMESPACE)[0]).status?.state;
    await eventually('the status says that the slot starts', () => state() === 'starting');
  });

  test('shows what it wrote, how many replicas the slot should have, and that its copies are current', async () => {
    const copies = ['configmaps', 'deployments.apps', 'leases.coordination.k8s.io', 'pods', 'services', 'slotspecs.inference.svc.dev'];
    await eventually('every copy is current', async () => {
      const text = await metrics();
      return copies.every((resource) => text.includes(`svc_kube_copy_age_seconds{resource="${resource}"} 0\n`));
    });
    const text = await metrics();
    expect(text).toMatch(/^svc_status_writes_total\{what="status",result="done"\} [1-9]/m);
    expect(text).toMatch(/^svc_slot_replicas_desired\{slot="primary"\} 1$/m);
    expect(text).toMatch(/^svc_leader_transitions_total \d+$/m);
    expect(text).toMatch(/^svc_kube_request_seconds_count\{verb="patch",resource="deployments\.apps"\} [1-9]/m);
  }, 30_000);

  test('shows that the API server is away, that its copies age, and that both are over', async () => {
    await api.goDown();
    await eventually('requests fail', async () => /^svc_kube_requests_total\{.*code="unreachable"\} [1-9]/m.test(await metrics()), 30_000);
    await eventually(
      'the copy of pods ages',
      async () => /^svc_kube_copy_age_seconds\{resource="pods"\} (?!0$)/m.test(await metrics()),
      30_000,
    );
    await api.comeUp();
    await eventually(
      'the copy of pods is current',
      async () => /^svc_kube_copy_age_seconds\{resource="pods"\} 0$/m.test(await metrics()),
      60_000,
    );
    await eventually('the service leads again', async () => (await metrics()).includes('\nsvc_leads 1\n'), 30_000);
  }, 150_000);

  test('exits after SIGTERM, and releases the Lease', async () => {
    await controller.kill('SIGTERM');
    const [lease] = api.objects(LEASES, NAMESPACE).filter(({ metadata }) => metadata.name === 'svc-controller');
    expect(lease).toMatchObject({ spec: { holderIdentity: '' } });
  }, 30_000);
});
