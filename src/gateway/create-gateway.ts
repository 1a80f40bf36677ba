/** Creates the gateway with all extensions: images in chats, forms, speech, translations and bodies on disk. */
import { boundaryOf } from './body/decide/multipart-head.ts';
import { BodySpool } from './body/body-spool.ts';
import { MultipartScanner } from './body/multipart-scanner.ts';
import type { Extensions, GatewayDeps } from './exchange-deps.ts';
import { createPlainGateway } from './gateway.ts';
import { createChatBody } from './translate/chat-body.ts';
import { createImageFetcher, type FetchImage } from './translate/fetch-image.ts';
import { SpeechBody, type SpeechDeps } from './translate/speech-body.ts';
import { TranslatedForward, type TranslationDeps } from './translate/translated-forward.ts';
import type { KeepImage } from './translate/translation-run.ts';

interface WholeGatewayDeps extends Omit<GatewayDeps, 'extensions'>, SpeechDeps, Pick<TranslationDeps, 'onFault'> {
  /** Default: a translation cannot keep images. */
  readonly keepImage?: KeepImage;
  /** Default: from the public internet, within the limits of the settings. */
  readonly fetchImage?: FetchImage;
}

const NOT_KEPT = 'This service keeps no images: set "response_format" to "b64_json"';
const keepNothing: KeepImage = async () => ({ ok: false, problem: NOT_KEPT });

export const createGateway = (deps: WholeGatewayDeps) => createPlainGateway({ ...deps, extensions: createExtensions(deps) });

function createExtensions({ keepImage = keepNothing, ...deps }: WholeGatewayDeps): Extensions {
  const { settings, onFault, fetchImage = createImageFetcher({ settings }) } = deps;
  return {
    scanBody({ body, capability }, { contentType = '' }) {
      if (body === 'multipart') return new MultipartScanner(boundaryOf(contentType));
      if (capability === 'speech') return new SpeechBody(settings.SVC_SPEECH_LIMIT, deps);
      return capability === 'chat' ? createChatBody({ settings, fetchImage }) : undefined;
    },
    openSpool: (options) => new BodySpool(options),
    translate: (request, events) => new TranslatedForward(request, { keepImage, onFault }, events),
  };
}
