/** Workflows for images in a ConfigMap that a real kubelet mounts into the gateway. No model is needed: what the slot says shows what the gateway has read. */
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { changed, PORTRAIT } from '../support/comfyui/user-workflows.ts';
import { install, type Installation } from '../support/live-cluster/cluster.ts';
import { describeWithCluster } from '../support/require/require-cluster.ts';

const KEY = 'portrait.workflow.json';
const ID = `image/models/checkpoints/workflows/${KEY}`;
const VALUES = `
replicas: 1
models: { workflowsConfigMapName: workflows }
toolboxes: { image: { rocm: { image: 'localhost/svc-toolbox-image-rocm:v1' } } }
`;
/** A kubelet looks at a mounted ConfigMap about once a minute, and at once when the annotations of the pod change. */
const SYNC_MS = 180_000;

describeWithCluster('Workflows in a ConfigMap', () => {
  let svc: Installation;
  beforeAll(async () => {
    svc = await install({ namespace: `svc-workflows-${process.pid}`, values: VALUES });
  }, 240_000);
  afterAll(() => svc?.dispose(), 240_000);

  const says = async (text: string): Promise<void> =>
    void (await svc.until('img', text, ({ status }) => JSON.stringify(status?.conditions ?? []).includes(text), SYNC_MS));
  const save = async (workflow: object): Promise<string> => {
    const metadata = { name: 'workflows' };
    await svc.apply(JSON.stringify({ apiVersion: 'v1', kind: 'ConfigMap', metadata, data: { [KEY]: JSON.stringify(workflow) } }));
    return svc.kubectl(['annotate', 'pods', ...(await svc.gateways()), `saved=${Date.now()}`, '--overwrite']);
  };

  test(
    'are asked for while they are missing, read once they are there, and read again when they change',
    async () => {
      const spec = { provider: 'image', backend: 'rocm', model: { default: ID } };
      await svc.apply(JSON.stringify({ apiVersion: 'inference.svc.dev/v1alpha1', kind: 'SlotSpec', metadata: { name: 'img' }, spec }));
      await says('into the ConfigMap that');
      const [before] = await svc.gateways();
      await save(PORTRAIT);
      await says('which is not in the model store');
      await save(changed(PORTRAIT, '3', { inputs: { clip: ['7', 0] } }));
      await says('goes in a circle');
      expect(await svc.gateways()).toEqual([before]);
    },
    4 * SYNC_MS,
  );
});
