/** An engine in the ConfigMap that the chart names, and a slot of it in another resource: its model serves, and a wrong ConfigMap keeps the last good definition. */
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { conditionOf, install, isReady, type Installation } from '../support/live-cluster/cluster.ts';
import { describeWithCluster } from '../support/require/require-cluster.ts';

const KEY = 'plain.toml';
const VALUES = 'replicas: 1\nmodels: { enginesConfigMapName: engines }\n';
const MODEL = 'demo-fox';
/** A kubelet looks at a mounted ConfigMap about once a minute, and at once when the annotations of the pod change. */
const SYNC_MS = 180_000;

/** A plain llama-server, in the image of the built-in provider. */
const definition = (command = '"llama-server", "--model", "{model}", "--host", "{host}", "--port", "{port}", "--threads", "1"'): string => `
serves = ["chat", "completion"]
backends = ["cpu"]
image = { cpu = "localhost/svc-toolbox-gguf-cpu:v1" }
command = [${command}]
models = { format = "gguf-file" }
health = { path = "/health" }
`;

const slotSpec = (name: string, provider: string): string =>
  JSON.stringify({
    apiVersion: 'inference.svc.dev/v1alpha1',
    kind: 'SlotSpec',
    metadata: { name },
    spec: { provider, backend: 'cpu', model: { default: MODEL }, resources: { memory: '256Mi' } },
  });

describeWithCluster('Engines in a ConfigMap', () => {
  let svc: Installation;
  beforeAll(async () => {
    svc = await install({ namespace: `svc-engines-${process.pid}`, values: VALUES });
  }, 240_000);
  afterAll(() => svc?.dispose(), 240_000);

  async function save(data: Readonly<Record<string, string>>): Promise<void> {
    await svc.apply(JSON.stringify({ apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: 'engines' }, data }));
    await svc.kubectl(['annotate', 'pods', ...(await svc.gateways()), `saved=${Date.now()}`, '--overwrite']);
  }
  const saysOf = async (name: string, text: string): Promise<void> =>
    void (await svc.until(name, text, ({ status }) => JSON.stringify(status?.conditions ?? []).includes(text), SYNC_MS));
  const answers = async (): Promise<number> => {
    const response = await svc.chat({ model: 'primary', max_tokens: 4 });
    await response.arrayBuffer();
    return response.status;
  };

  test(
    'serve a slot once the engine is there, and go on with the last good definition while the ConfigMap is wrong',
    async () => {
      await svc.apply(slotSpec('primary', 'plain'));
      await saysOf('primary', 'There is no engine named \\"plain\\"');
      const [before] = await svc.gateways();
      await save({ [KEY]: definition() });
      const ready = await svc.until('primary', 'ready', isReady, SYNC_MS);
      expect(await answers()).toBe(200);

      await save({ [KEY]: definition('"llama-server", "--model", "{model}", "--host", "{host}"') });
      await saysOf('primary', 'Pass \\"{port}\\" to the server');
      const wrong = await svc.slot('primary');
      expect(conditionOf(wrong, 'SpecValid')).toMatchObject({ status: 'False' });
      expect([conditionOf(wrong, 'Ready')?.status, wrong?.status?.restarts]).toEqual(['True', ready.status?.restarts]);
      expect(await answers()).toBe(200);

      await save({});
      await saysOf('primary', 'is missing');
      expect(await answers()).toBe(200);

      await save({ [KEY]: definition() });
      await svc.until('primary', 'valid again', (slot) => conditionOf(slot, 'SpecValid')?.status === 'True', SYNC_MS);
      expect([await answers(), await svc.gateways()]).toEqual([200, [before]]);
    },
    5 * SYNC_MS,
  );
});
