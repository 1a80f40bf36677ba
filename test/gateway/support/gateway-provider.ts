/** The provider of the gateway's tests, in the process of a test and in the workers that it starts. */
import { NATIVE_PATHS, PROPS_PATH } from '../../../src/gateway/route/decide/inference-paths.ts';
import type { Provider, ProviderRegistry } from '../../../src/providers/provider.ts';
import { PLAIN_PROVIDER } from '../../support/plain-provider.ts';

/** Forwards each path as llama.cpp expects it. Its models take what their contents do not deny. */
export const PROVIDER: Provider = {
  ...PLAIN_PROVIDER,
  abilities: (_name, _spec, { contents = {} }) => ({
    ...(contents['vision'] === false ? { vision: false } : {}),
    ...(contents['audio'] === false ? { audio: false } : {}),
  }),
  nativePaths: Object.fromEntries([...NATIVE_PATHS, PROPS_PATH].map(({ path }) => [path, path])),
  infer: ({ path }) => ({ kind: 'forward', path: path === '/v1/rerankings' ? '/v1/rerank' : path }),
};

export const GGUF_PROVIDERS: ProviderRegistry = { gguf: PROVIDER };
