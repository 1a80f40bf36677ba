import { describe, expect, test } from '@jest/globals';
import { at } from '../../../helm/rendered.ts';
import { kubeObjects, type KubeContext } from '../../../../src/cluster/workloads/decide/render-deployment.ts';
import type { KubeWorkload } from '../../../../src/cluster/workloads/decide/object-names.ts';
import { context, kubeWorkload } from '../workload-fixtures.ts';

const podSpec = (workload: KubeWorkload, of: KubeContext) => at(kubeObjects(workload, of).deployment, 'spec', 'template', 'spec');
const server = (workload: KubeWorkload, of: KubeContext) => at(podSpec(workload, of), 'containers', 0);

describe('the devices of a workload', () => {
  const devices = ['/dev/dri', '/dev/kfd', 'nvidia.com/gpu=all'];
  const of = (
    cluster: Partial<KubeWorkload['cluster']>,
    allocation: KubeContext['allocation'] = 'device-plugin',
    ofProvider: readonly string[] = devices,
  ) => {
    const workload = kubeWorkload({ cluster, devices: ofProvider });
    return {
      objects: kubeObjects(workload, context({}, allocation)),
      pod: podSpec(workload, context({}, allocation)),
      server: server(workload, context({}, allocation)),
    };
  };

  test('are an extended resource, one by default, and the node label is only a preference', () => {
    expect(at(of({ backend: 'cuda' }).server, 'resources', 'limits')).toEqual({ 'nvidia.com/gpu': '1' });
    const two = of({ backend: 'vulkan', gpus: 2 });
    expect(at(two.server, 'resources', 'limits')).toEqual({ 'amd.com/gpu': '2' });
    const term = { matchExpressions: [{ key: 'inference.svc.dev/backend-vulkan', operator: 'In', values: ['true'] }] };
    expect(at(two.pod, 'affinity', 'nodeAffinity')).toEqual({
      preferredDuringSchedulingIgnoredDuringExecution: [{ weight: 100, preference: term }],
    });
    expect(at(two.pod, 'volumes')).not.toContainEqual(expect.objectContaining({ hostPath: expect.anything() }));
  });

  test('are claimed through DRA if the cluster has a device class for them', () => {
    const claimed = of({ backend: 'rocm', gpus: 2 }, 'dra');
    const name = 'svc-slot-primary-0123456789ab';
    expect(claimed.objects.claimTemplate).toMatchObject({ metadata: { name } });
    expect(at(claimed.objects.claimTemplate, 'spec', 'spec', 'devices', 'requests')).toEqual([
      { name: 'gpu', exactly: { deviceClassName: 'gpu.amd.com', allocationMode: 'ExactCount', count: 2 } },
    ]);
    expect(at(claimed.pod, 'resourceClaims')).toEqual([{ name: 'gpu', resourceClaimTemplateName: name }]);
    expect(at(claimed.server, 'resources')).toMatchObject({ claims: [{ name: 'gpu' }] });
    expect(at(claimed.server, 'resources', 'limits')).toBeUndefined();
    expect(of({}, 'dra').objects.claimTemplate).toBeUndefined();
  });

  test('are none if the slot computes on the CPU', () => {
    for (const allocation of ['device-plugin', 'dra'] as const) {
      const { objects, pod, server: container } = of({ backend: 'rocm', gpus: 0, deviceAccess: 'hostDevices' }, allocation);
      expect(at(container, 'securityContext')).toEqual({
        allowPrivilegeEscalation: false,
        capabilities: { drop: ['ALL'] },
        readOnlyRootFilesystem: true,
      });
      expect(JSON.stringify([pod, objects.deployment.metadata])).not.toMatch(/\/dev\/|nvidia|amd\.com|affinity|runAsUser":0/);
      expect(objects.claimTemplate).toBeUndefined();
    }
  });

  test('are of the resource that the slot names, so that nodes of several kinds are in one cluster', () => {
    const partition = of({ backend: 'cuda', gpuResource: 'nvidia.com/mig-1g.10gb' });
    expect(at(partition.server, 'resources', 'limits')).toEqual({ 'nvidia.com/mig-1g.10gb': '1' });
    expect(at(of({ backend: 'vulkan', gpuResource: 'gpu.intel.com/i915', gpus: 2 }).server, 'resources', 'limits')).toEqual({
      'gpu.intel.com/i915': '2',
    });
    const npu = of({ backend: 'npu', gpuResource: 'amd.com/npu' });
    expect(at(npu.server, 'resources', 'limits')).toEqual({ 'amd.com/npu': '1' });
    expect(at(npu.server, 'securityContext')).not.toHaveProperty('privileged');
    // Its server raises its own limit of locked memory, for which a pod has no setting.
    expect(at(npu.server, 'securityContext', 'capabilities')).toEqual({ add: ['SYS_RESOURCE'], drop: ['ALL'] });
    expect(at(partition.server, 'securityContext', 'capabilities')).toEqual({ drop: ['ALL'] });
  });

  test('are given by the container runtime without privileges where it knows their names', () => {
    const named = of({ backend: 'cuda', deviceAccess: 'hostDevices' }, 'device-plugin', ['nvidia.com/gpu=all']);
    expect(at(named.server, 'securityContext')).toEqual({
      allowPrivilegeEscalation: false,
      capabilities: { drop: ['ALL'] },
      readOnlyRootFilesystem: true,
    });
    expect(at(named.objects.deployment, 'spec', 'template', 'metadata', 'annotations')).toMatchObject({
      'cdi.k8s.io/svc': 'nvidia.com/gpu=all',
    });
  });

  test('are device files of a labelled node if the slot asks for them, or nothing counts them', () => {
    for (const cluster of [{ backend: 'rocm', deviceAccess: 'hostDevices' }, { backend: 'npu' }, { backend: 'npu', gpus: 0 }] as const) {
      const files = of(cluster);
      expect(at(files.server, 'securityContext')).toMatchObject({ privileged: true });
      expect(at(files.pod, 'volumes')).toContainEqual({ name: 'device-1', hostPath: { path: '/dev/kfd' } });
      expect(at(files.server, 'volumeMounts')).toContainEqual({ name: 'device-1', mountPath: '/dev/kfd' });
      expect(at(files.objects.deployment, 'spec', 'template', 'metadata', 'annotations')).toMatchObject({
        'cdi.k8s.io/svc': 'nvidia.com/gpu=all',
      });
      expect(at(files.pod, 'affinity', 'nodeAffinity', 'requiredDuringSchedulingIgnoredDuringExecution', 'nodeSelectorTerms')).toHaveLength(
        1,
      );
    }
    expect(of({ backend: 'cpu' }).pod).not.toHaveProperty('affinity');
  });
});
