/** Each shipped definition, and each one that tests run, keeps the contract of the built-in providers, with answers made from the recorded facts. */
import { expect, test } from '@jest/globals';
import { encodeDemoModel } from '../../../toolboxes/demo/demo-models.ts';
import { INFERENCE_PATHS } from '../../../src/gateway/route/decide/inference-paths.ts';
import { engineProvider } from '../../../src/providers/engines/engine-provider.ts';
import type { ProbeResponse, Sized } from '../../../src/providers/provider.ts';
import { ENGINE_PATHS, type EngineDefinition } from '../../../src/schema/slot/engine-document.ts';
import { serverPath } from '../../../src/providers/engines/decide/engine-command.ts';
import { ModelId } from '../../../src/schema/words/names.ts';
import { describeProviderContract, type ProviderSamples } from '../../support/providers/provider-contract.ts';
import { ENGINE_PROGRAMS } from '../../support/engine-programs.ts';
import { enginesIn, shippedEngines } from './engine-files.ts';

const json = (body: unknown): ProbeResponse => ({ status: 200, body: JSON.stringify(body) });
const text = (value: string): Uint8Array => new TextEncoder().encode(value);
const ID = ModelId.parse('m');

/** As a server of OpenAI's dialect answers. */
const ANSWERS: Readonly<Record<keyof typeof ENGINE_PATHS, ProbeResponse>> = {
  chat: json({ choices: [{ index: 0, message: { role: 'assistant', content: 'H' }, finish_reason: 'length' }] }),
  completion: json({ choices: [{ index: 0, text: 'The', logprobs: null, finish_reason: 'length' }] }),
  embedding: json({ object: 'list', data: [{ object: 'embedding', index: 0, embedding: [0.5, -0.25] }] }),
  rerank: json({ results: [{ index: 0, relevance_score: 0.7 }] }),
  transcription: json({ text: '' }),
  translation: json({ text: '' }),
  speech: { status: 200, body: `RIFF\0\0\0\0WAVEfmt ${'\0'.repeat(150)}\u0003\u0001${'\0'.repeat(100)}` },
  image: json({ data: [] }),
};

function soundAnswer(engine: EngineDefinition) {
  return (asked: string): ProbeResponse => {
    if (asked === engine.health.path) return { status: 200, body: engine.health.contains ?? '' };
    const found = Object.entries(ENGINE_PATHS).find(([, [first]]) => serverPath(engine, first) === asked);
    const answer = Object.entries(ANSWERS).find(([capability]) => capability === found?.[0]);
    return answer?.[1] ?? { status: 404, body: '{"detail":"Not Found"}' };
  };
}

const directory = (weights: string) => ({
  entry: { name: 'model', names: ['config.json', weights] },
  files: { 'config.json': text('{"model_type":"qwen3","max_position_embeddings":4096}'), [weights]: new Uint8Array(1000) },
});
const unread = (hostPath: string): Sized => ({ id: ID, hostPath, sizeBytes: 1000 });

const MODELS: Readonly<Record<EngineDefinition['models']['format'], Pick<ProviderSamples, 'models' | 'unread'>>> = {
  'gguf-file': { models: { 'a GGUF model': { entry: { name: 'm.gguf' }, files: { 'm.gguf': encodeDemoModel('demo-fox') } } } },
  'safetensors-directory': { models: { 'a directory of the Hub': directory('model.safetensors') } },
  'onnx-directory': { models: { 'a directory of optimum': directory('model.onnx') } },
  'any-file': { models: {}, unread: [unread('/models/m.ckpt')] },
  name: { models: {}, unread: [unread('m')] },
};

for (const engine of [...shippedEngines(), ...enginesIn(ENGINE_PROGRAMS)])
  describeProviderContract(engineProvider(engine), {
    ...MODELS[engine.models.format],
    maxReadBytes: 8 * 2 ** 20,
    ...(engine.memory.fractionFlag === undefined ? {} : { document: { resources: { memory: '8Gi' } } }),
    sound: soundAnswer(engine),
  });

test('the paths that engines may serve are those of the gateway', () => {
  const ours = Object.entries(ENGINE_PATHS).flatMap(([capability, paths]) => paths.map((each) => `${capability} ${each}`));
  const theirs = INFERENCE_PATHS.map(({ path, canonical = path, capability }) => `${capability} ${canonical}`);
  expect(new Set(ours)).toEqual(new Set(theirs));
});
