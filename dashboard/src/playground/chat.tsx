/** Chat with image input and tool calls, as far as the model supports them. */
import type { ComponentChildren, JSX, RefObject } from 'preact';
import { useEffect, useLayoutEffect, useRef, useState } from 'preact/hooks';
import { useApp } from '../app-context.ts';
import { EMPTY_ANSWER, chatBody, openCalls, toolResults, type ToolCall } from '../decide/chat.ts';
import { parseJson } from '../decide/untrusted.ts';
import { useLoaded } from '../parts/use-loaded.tsx';
import { P } from '../texts-playground.ts';
import type { Models } from '../types.ts';
import { Message } from './message.tsx';
import { CodeSamples } from './code-samples.tsx';
import { SlotBar, useSlotChoice } from './slot-choice.tsx';
import { useConversation } from './use-conversation.ts';

export function Chat(): JSX.Element {
  const choice = useSlotChoice('chat');
  const [prompt, setPrompt] = useState('');
  const [images, setImages] = useState<readonly string[]>([]);
  const [toolText, setToolText] = useState('');
  const { messages, answer, ask, stop, clear } = useConversation();
  const hasVision = useVision(choice.slot);
  const tools = readTools(toolText);
  const sent = hasVision ? images : [];
  const send = (text: string): void => {
    if (answer !== undefined || text.trim() === '' || choice.slot === '' || tools === undefined) return;
    const unanswered = toolResults(openCalls(messages), []);
    ask({ model: choice.slot, added: [...unanswered, { ...EMPTY_ANSWER, role: 'user', content: text, images: sent }], tools });
    setPrompt('');
    setImages([]);
  };
  const body = chatBody(
    choice.slot,
    [{ ...EMPTY_ANSWER, role: 'user', content: prompt || (messages.findLast(({ role }) => role === 'user')?.content ?? 'Hello') }],
    tools,
  );
  const shown = [...messages, ...(answer === undefined ? [] : [answer])];
  const calls = answer === undefined ? openCalls(messages) : [];
  const end = useFollow(answer ?? messages);
  return (
    <>
      <SlotBar choice={choice}>
        <button type="button" disabled={messages.length === 0 || answer !== undefined} onClick={clear}>
          {P.newChat}
        </button>
      </SlotBar>
      <section class="chat" aria-label={P.conversation} aria-live="polite" aria-busy={answer !== undefined}>
        {shown.length === 0 && choice.slot !== '' && <Examples onChoose={send} />}
        {shown.map((message, index) => (
          <Message key={index} message={message} isOpen={answer !== undefined && index === messages.length} slot={choice.slot} />
        ))}
        {calls.length > 0 && (
          <ToolResults
            calls={calls}
            onSend={(results) => ask({ model: choice.slot, added: toolResults(calls, results), tools: tools ?? [] })}
          />
        )}
        <span ref={end} aria-hidden="true" />
      </section>
      <AskForm
        prompt={prompt}
        setPrompt={setPrompt}
        canSend={choice.slot !== '' && prompt.trim() !== '' && tools !== undefined}
        onSend={() => send(prompt)}
        onStop={answer === undefined ? undefined : stop}
      >
        {hasVision ? <Attachments images={images} onImages={setImages} /> : choice.slot !== '' && <p class="why">{P.noVision}</p>}
      </AskForm>
      <ToolsField text={toolText} onText={setToolText} isWrong={tools === undefined} />
      <CodeSamples kind="chat" body={body} />
    </>
  );
}

interface AskFormProps {
  readonly prompt: string;
  readonly setPrompt: (prompt: string) => void;
  readonly canSend: boolean;
  readonly onSend: () => void;
  /** Defined while a response is being streamed. */
  readonly onStop: (() => void) | undefined;
  readonly children: ComponentChildren;
}

function AskForm({ prompt, setPrompt, canSend, onSend, onStop, children }: AskFormProps): JSX.Element {
  const submit = (event: Event): void => {
    event.preventDefault();
    onSend();
  };
  return (
    <form class="ask" onSubmit={submit}>
      <label>
        {P.message}
        <textarea
          rows={3}
          value={prompt}
          onInput={(event) => setPrompt(event.currentTarget.value)}
          onKeyDown={(event) => {
            if (event.key === 'Enter' && !event.shiftKey && !event.isComposing) submit(event);
          }}
        />
      </label>
      {children}
      <div class="buttons end">
        {onStop === undefined ? (
          <button type="submit" class="main" disabled={!canSend}>
            {P.send}
          </button>
        ) : (
          <button type="button" onClick={onStop}>
            {P.stop}
          </button>
        )}
      </div>
    </form>
  );
}

/** Keeps the end in view as it grows, unless the reader has scrolled away from it. Changes with `grown`. */
function useFollow(grown: unknown): RefObject<HTMLSpanElement | null> {
  const end = useRef<HTMLSpanElement>(null);
  const follows = useRef(true);
  useEffect(() => {
    const note = (): void => {
      follows.current = (end.current?.getBoundingClientRect().top ?? 0) < innerHeight + FOLLOW_PX;
    };
    addEventListener('scroll', note, { passive: true });
    return () => removeEventListener('scroll', note);
  }, []);
  useLayoutEffect(() => {
    if (follows.current) end.current?.scrollIntoView({ block: 'nearest' });
  }, [grown]);
  return end;
}

/** Less than a line: whoever scrolls by one has left the end. */
const FOLLOW_PX = 16;

interface ToolResultsProps {
  readonly calls: readonly ToolCall[];
  readonly onSend: (results: readonly string[]) => void;
}

/** The page runs no tools: the user enters what they returned. */
function ToolResults({ calls, onSend }: ToolResultsProps): JSX.Element {
  const [results, setResults] = useState<readonly string[]>(calls.map(() => ''));
  return (
    <form
      class="ask"
      onSubmit={(event) => {
        event.preventDefault();
        onSend(results);
      }}
    >
      {calls.map(({ name }, index) => (
        <label key={index}>
          {P.resultOf(name)}
          <textarea
            class="mono"
            rows={2}
            value={results[index]}
            onInput={({ currentTarget: { value } }) => setResults(results.with(index, value))}
          />
        </label>
      ))}
      <button type="submit" class="main">
        {P.sendResults}
      </button>
    </form>
  );
}

/** Whether the model of the slot accepts images, according to its files or the catalogue. */
function useVision(slot: string): boolean {
  const { client, store } = useApp();
  const model = store.of(slot)?.slot.value.status.model ?? '';
  const models = useLoaded((signal) => client.fetchJson<Models>('/api/models', { signal }), [model]);
  if (models.kind !== 'done') return false;
  const entry = models.value.models.find(({ id }) => id === model);
  return entry?.kind === 'vision' || entry?.abilities?.includes('vision') === true;
}

/** Undefined if the text is not a JSON array. */
function readTools(text: string): readonly unknown[] | undefined {
  if (text.trim() === '') return [];
  const parsed = parseJson(text);
  return Array.isArray(parsed) ? parsed : undefined;
}

function Examples({ onChoose }: { readonly onChoose: (prompt: string) => void }): JSX.Element {
  return (
    <div class="ideas">
      <p>{P.tryThese}</p>
      <div class="buttons">
        {P.ideas.map((idea) => (
          <button key={idea} type="button" onClick={() => onChoose(idea)}>
            {idea}
          </button>
        ))}
      </div>
    </div>
  );
}

interface AttachmentsProps {
  readonly images: readonly string[];
  readonly onImages: (images: readonly string[]) => void;
}

function Attachments({ images, onImages }: AttachmentsProps): JSX.Element {
  const add = async (files: FileList | null): Promise<void> =>
    onImages([...images, ...(await Promise.all([...(files ?? [])].map(readImage)))]);
  return (
    <div class="pictures">
      <label>
        {P.attach}
        <input type="file" accept="image/*" multiple onChange={({ currentTarget: { files } }) => void add(files)} />
      </label>
      {images.map((url, index) => (
        <button key={index} type="button" aria-label={`${P.removeImage} ${index + 1}`} onClick={() => onImages(images.toSpliced(index, 1))}>
          <img src={url} alt="" />
        </button>
      ))}
    </div>
  );
}

async function readImage(file: File): Promise<string> {
  return new Promise((resolve, reject) => {
    const reader = new FileReader();
    reader.addEventListener('load', () => resolve(typeof reader.result === 'string' ? reader.result : ''));
    reader.addEventListener('error', () => reject(reader.error ?? new Error(file.name)));
    reader.readAsDataURL(file);
  });
}

interface ToolsFieldProps {
  readonly text: string;
  readonly onText: (text: string) => void;
  readonly isWrong: boolean;
}

const TOOL_EXAMPLE =
  '[{"type":"function","function":{"name":"get_weather","parameters":{"type":"object","properties":{"city":{"type":"string"}}}}}]';

function ToolsField({ text, onText, isWrong }: ToolsFieldProps): JSX.Element {
  return (
    <details>
      <summary>{P.tools}</summary>
      <p class="why">{P.toolsWhy}</p>
      <textarea
        class="mono"
        rows={4}
        aria-label={P.tools}
        placeholder={TOOL_EXAMPLE}
        value={text}
        onInput={(event) => onText(event.currentTarget.value)}
      />
      {isWrong && <p role="alert">{P.toolsInvalid}</p>}
    </details>
  );
}
