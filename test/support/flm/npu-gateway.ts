/** The gateway in front of a stand-in for FastFlowLM: the provider for NPUs as the service uses it, without a controller. */
import { npu } from '../../../src/providers/npu/npu.ts';
import { ModelId, SlotName } from '../../../src/schema/words/names.ts';
import type { ModelFacts } from '../../../src/providers/provider.ts';
import type { Capability } from '../../../src/schema/slot/provider-kinds.ts';
import { parseSlot, type SlotSpec } from '../../../src/schema/slot/slot-spec.ts';
import { publish } from '../../gateway/support/board-fixture.ts';
import { startGateway, until, type GatewayFixture } from '../../gateway/support/gateway-fixture.ts';
import { startFlm, type Flm, type FlmOptions } from './flm-server.ts';
import { modelList } from './model-list.ts';

const MODEL = 'llama3.2:1b';

export function npuModel(id = MODEL, installed?: readonly string[]): ModelFacts {
  const own = npu.ownModels?.parse(modelList(installed))?.find((each) => each.id === id);
  if (own === undefined) throw new Error(`The list has no "${id}"`);
  return { id: ModelId.parse(id), hostPath: id, sizeBytes: own.sizeBytes, provider: 'npu', contents: own.contents };
}

export function npuSpec(model = MODEL, more: { readonly args?: string[]; readonly context?: number } = {}): SlotSpec {
  const parsed = parseSlot(SlotName.parse('npu'), { provider: 'npu', model: { default: model, ...more } });
  if (!parsed.ok) throw new Error(JSON.stringify(parsed.problems));
  return parsed.spec;
}

export interface NpuFixture {
  readonly gateway: GatewayFixture;
  readonly flm: Flm;
  /** Waits until nothing is in use. */
  atRest(): Promise<void>;
  close(): Promise<void>;
}

export async function startNpuGateway(options: Partial<FlmOptions> = {}): Promise<NpuFixture> {
  const serves: readonly Capability[] = ['chat', 'embedding', 'transcription'];
  const crash = () => undefined;
  const flm = await startFlm({ host: '127.0.0.1', port: 0, model: MODEL, asr: true, embed: true, connections: 256, crash, ...options });
  const served = { spec: npuSpec(), model: npuModel() };
  const gateway = await startGateway({ provider: { infer: (request) => npu.infer(request, serves, served) } });
  publish(gateway.board, {
    name: 'npu',
    model: MODEL,
    aliases: ['gpt-5'],
    capabilities: serves,
    targets: [{ workload: 'w1', port: flm.port }],
  });
  const atRest = async (): Promise<void> => until(() => gateway.gateway.load().requests === 0);
  return {
    gateway,
    flm,
    atRest,
    async close() {
      await gateway.close();
      await flm.close();
    },
  };
}
