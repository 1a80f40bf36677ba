/** Chooses the scanner for the bodies of a path. */
import type { Settings } from '../../schema/settings/settings.ts';
import type { BodyScan } from './body-scan.ts';
import { BodyScanner } from './body-scanner.ts';
import type { InferencePath } from '../route/decide/inference-paths.ts';
import { boundaryOf } from './decide/multipart-head.ts';
import { refuseMedia } from '../decide/refuse-media.ts';
import type { RequestHead } from '../upstream/decide/request-head.ts';
import type { FoundUrl } from './media-scanner.ts';
import { SpeechScanner } from '../speech-scanner.ts';
import { MultipartScanner } from './multipart-scanner.ts';

export function createBodyScan(
  { body, capability }: Pick<InferencePath, 'body' | 'capability'>,
  { contentType = '' }: Pick<RequestHead, 'contentType'>,
  { SVC_FETCH_IMAGES: policy, SVC_SPEECH_LIMIT }: Pick<Settings, 'SVC_FETCH_IMAGES' | 'SVC_SPEECH_LIMIT'>,
): BodyScan {
  if (body === 'multipart') return new MultipartScanner(boundaryOf(contentType) ?? '');
  if (capability === 'speech') return new SpeechScanner(SVC_SPEECH_LIMIT);
  if (capability !== 'chat') return new BodyScanner();
  const urls: FoundUrl[] = [];
  return new BodyScanner({
    urls,
    keepsAll: policy !== 'off',
    check(url) {
      const problem = refuseMedia(url, policy, urls.length);
      if (problem === undefined) urls.push(url);
      return problem;
    },
  });
}
