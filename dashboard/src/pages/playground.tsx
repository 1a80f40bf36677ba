/** A place to try what the slots can do, with the request that a program would send. */
import type { JSX } from 'preact';
import { useApp } from '../app-context.ts';
import { PARTS, type PlaygroundPart } from '../decide/route.ts';
import { PartTabs } from '../parts/part-tabs.tsx';
import { Chat } from '../playground/chat.tsx';
import { Images } from '../playground/images.tsx';
import { Rerank } from '../playground/rerank.tsx';
import { Similarity } from '../playground/similarity.tsx';
import { Speak } from '../playground/speak.tsx';
import { Transcribe } from '../playground/transcribe.tsx';
import { PLAYGROUND_NAMES, P } from '../texts-playground.ts';
import { PAGE_NAMES } from '../texts.ts';

const SHOWN: Readonly<Record<PlaygroundPart, () => JSX.Element>> = {
  chat: Chat,
  images: Images,
  speak: Speak,
  transcribe: Transcribe,
  similarity: Similarity,
  rerank: Rerank,
};

export function PlaygroundPage(): JSX.Element {
  const { place } = useApp();
  const part = PARTS.playground.find((name) => name === place.value.part) ?? 'chat';
  const Part = SHOWN[part];
  return (
    <>
      <div class="page-head">
        <h1>{PAGE_NAMES.playground}</h1>
        <PartTabs page="playground" label={P.parts} names={PLAYGROUND_NAMES} current={part} />
      </div>
      <div class="playground">
        <Part key={part} />
      </div>
    </>
  );
}
