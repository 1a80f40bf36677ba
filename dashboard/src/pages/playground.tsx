/** The playground, where a user tries the slots. */
import type { JSX } from 'preact';
import type { PlaygroundPart } from '../decide/route.ts';
import { TabbedPage } from '../parts/tabbed-page.tsx';
import { Chat } from '../playground/chat.tsx';
import { Compare } from '../playground/compare.tsx';
import { Images } from '../playground/images.tsx';
import { Rerank } from '../playground/rerank.tsx';
import { Similarity } from '../playground/similarity.tsx';
import { Speak } from '../playground/speak.tsx';
import { Transcribe } from '../playground/transcribe.tsx';
import { PLAYGROUND_NAMES } from '../texts-playground.ts';

const SHOWN: Readonly<Record<PlaygroundPart, () => JSX.Element>> = {
  chat: Chat,
  compare: Compare,
  images: Images,
  speak: Speak,
  transcribe: Transcribe,
  similarity: Similarity,
  rerank: Rerank,
};

const NEEDS = { chat: 'v1', compare: 'v1', images: 'v1', speak: 'v1', transcribe: 'v1', similarity: 'v1', rerank: 'v1' } as const;

export function PlaygroundPage(): JSX.Element {
  return <TabbedPage page="playground" names={PLAYGROUND_NAMES} parts={SHOWN} needs={NEEDS} />;
}
