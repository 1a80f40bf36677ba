/**
 * All providers. A new one is a folder beside this file, a line here, and its kind in `schema/slot/provider-kinds.ts`.
 * The smallest is `test/support/toy-provider`.
 */
import type { ModelFormat, ProviderRegistry } from './provider.ts';
import { directoryFormats } from './engines/engine-formats.ts';
import { gguf } from './gguf/gguf.ts';
import { image } from './image/image.ts';
import { npu } from './npu/npu.ts';
import { remote } from './remote/remote.ts';
import { stt } from './stt/stt.ts';
import { tts } from './tts/tts.ts';

export const PROVIDERS = { gguf, npu, stt, tts, image, remote } as const satisfies ProviderRegistry;

export const modelFormats = (providers: ProviderRegistry): readonly ModelFormat[] => Object.values(providers).map(({ models }) => models);

export const MODEL_FORMATS = modelFormats(PROVIDERS);

/** Models of declared engines that no provider reads. */
export const DIRECTORY_FORMATS = directoryFormats(MODEL_FORMATS);

export { engineProvider } from './engines/engine-provider.ts';
