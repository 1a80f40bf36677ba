/** A place to try a chat model, with the request that a program would send. */
import type { JSX } from 'preact';
import { useEffect, useRef, useState } from 'preact/hooks';
import { useApp } from '../app-context.ts';
import { EMPTY_ANSWER, extendAnswer, requestBody, type ChatMessage } from '../decide/chat.ts';
import { chatSnippet, SNIPPETS, type SnippetName } from '../decide/snippets.ts';
import { readEvents, SSE_BEGIN } from '../decide/sse.ts';
import { messageOf, type Client } from '../io/client.ts';
import { Markdown } from '../parts/markdown.tsx';
import { PAGE_NAMES, T } from '../texts.ts';

interface Conversation {
  readonly messages: readonly ChatMessage[];
  /** What is being written. */
  readonly answer: ChatMessage | undefined;
  ask(model: string, prompt: string): void;
  stop(): void;
  clear(): void;
}

function useConversation(client: Client): Conversation {
  const [messages, setMessages] = useState<readonly ChatMessage[]>([]);
  const [answer, setAnswer] = useState<ChatMessage>();
  const running = useRef<AbortController>(null);
  const send = async (model: string, prompt: string): Promise<void> => {
    const asked: readonly ChatMessage[] = [...messages, { ...EMPTY_ANSWER, role: 'user', content: prompt }];
    const stop = new AbortController();
    running.current = stop;
    setMessages(asked);
    setAnswer(EMPTY_ANSWER);
    const last = await readAnswer(client, requestBody(model, asked), stop.signal, setAnswer);
    setMessages([...asked, last]);
    setAnswer(undefined);
  };
  // Nobody reads an answer on a page that is gone.
  useEffect(() => () => running.current?.abort(), []);
  return {
    messages,
    answer,
    ask: (model, prompt) => void send(model, prompt),
    stop: () => running.current?.abort(),
    clear: () => setMessages([]),
  };
}

export function PlaygroundPage(): JSX.Element {
  const { client, store } = useApp();
  const slots = (store.names.value ?? []).filter((name) => store.of(name)?.slot.value.status.capabilities.includes('chat') === true);
  const [chosen, setChosen] = useState('');
  const [prompt, setPrompt] = useState('');
  const { messages, answer, ask, stop, clear } = useConversation(client);
  const slot = slots.includes(chosen) ? chosen : (slots[0] ?? '');
  const submit = (event: Event): void => {
    event.preventDefault();
    if (answer !== undefined || prompt.trim() === '' || slot === '') return;
    ask(slot, prompt);
    setPrompt('');
  };
  return (
    <>
      <div class="page-head">
        <h1>{PAGE_NAMES.playground}</h1>
        <label class="inline">
          {T.slot}
          <select value={slot} onChange={(event) => setChosen(event.currentTarget.value)}>
            {slots.map((name) => (
              <option key={name}>{name}</option>
            ))}
          </select>
        </label>
        <button type="button" disabled={messages.length === 0 || answer !== undefined} onClick={clear}>
          {T.clear}
        </button>
      </div>
      {store.names.value !== undefined && slots.length === 0 && <p role="status">{T.noChat}</p>}
      <section class="chat" aria-label={T.answers} aria-live="polite" aria-busy={answer !== undefined}>
        {[...messages, ...(answer === undefined ? [] : [answer])].map((message, index) => (
          <Message key={index} message={message} isOpen={answer !== undefined && index === messages.length} slot={slot} />
        ))}
      </section>
      <AskForm
        prompt={prompt}
        setPrompt={setPrompt}
        canSend={slot !== '' && prompt.trim() !== ''}
        onSend={submit}
        onStop={answer === undefined ? undefined : stop}
      />
      <Snippets model={slot} prompt={prompt || (messages.findLast(({ role }) => role === 'user')?.content ?? 'Hello')} />
    </>
  );
}

interface AskFormProps {
  readonly prompt: string;
  readonly setPrompt: (prompt: string) => void;
  readonly canSend: boolean;
  readonly onSend: (event: Event) => void;
  /** Set while an answer is being written. */
  readonly onStop: (() => void) | undefined;
}

function AskForm({ prompt, setPrompt, canSend, onSend, onStop }: AskFormProps): JSX.Element {
  return (
    <form class="ask" onSubmit={onSend}>
      <label>
        {T.prompt}
        <textarea
          rows={3}
          value={prompt}
          onInput={(event) => setPrompt(event.currentTarget.value)}
          onKeyDown={(event) => {
            if (event.key === 'Enter' && !event.shiftKey && !event.isComposing) onSend(event);
          }}
        />
      </label>
      {onStop === undefined ? (
        <button type="submit" class="main" disabled={!canSend}>
          {T.send}
        </button>
      ) : (
        <button type="button" onClick={onStop}>
          {T.stop}
        </button>
      )}
    </form>
  );
}

interface MessageProps {
  readonly message: ChatMessage;
  /** The answer is still being written. */
  readonly isOpen: boolean;
  readonly slot: string;
}

function Message({ message: { role, content, reasoning, tools, ended }, isOpen, slot }: MessageProps): JSX.Element {
  const isEmpty = content === '' && reasoning === '' && tools.length === 0;
  return (
    <article class={`message ${role}`}>
      <h2>{role === 'user' ? T.you : slot}</h2>
      {isOpen && isEmpty && <p class="why">{T.waiting}</p>}
      {reasoning !== '' && (
        <details open={content === ''}>
          <summary>{T.thinking}</summary>
          <p class="reasoning">{reasoning}</p>
        </details>
      )}
      {role === 'user' ? <p class="plain">{content}</p> : <Markdown text={content} />}
      {tools.map(({ name, args }, index) => (
        <p key={index}>
          <span class="tag">{T.toolCall}</span>{' '}
          <code>
            {name}({args})
          </code>
        </p>
      ))}
      {ended !== undefined && ended !== 'stop' && <p class="why">{ended}</p>}
    </article>
  );
}

function Snippets({ model, prompt }: { readonly model: string; readonly prompt: string }): JSX.Element {
  const { store } = useApp();
  const [name, setName] = useState<SnippetName>('curl');
  const needsToken = store.status.value?.auth_enabled === true;
  return (
    <details class="snippets">
      <summary>{T.sameRequest}</summary>
      <div class="buttons" role="group" aria-label={T.sameRequest}>
        {SNIPPETS.map((each) => (
          <button key={each} type="button" aria-pressed={each === name} onClick={() => setName(each)}>
            {each}
          </button>
        ))}
      </div>
      <pre tabIndex={0}>{chatSnippet(name, { origin: location.origin, model, prompt, needsToken })}</pre>
    </details>
  );
}

/** Calls back with the answer as it grows, at most once for each frame. Failures are part of the conversation. */
async function readAnswer(
  client: Client,
  body: object,
  signal: AbortSignal,
  onAnswer: (answer: ChatMessage) => void,
): Promise<ChatMessage> {
  let answer = EMPTY_ANSWER;
  let drawing = 0;
  try {
    const response = await client.open('/v1/chat/completions', { method: 'POST', body, signal });
    const reader = response.body?.pipeThrough(new TextDecoderStream()).getReader();
    let rest = SSE_BEGIN;
    for (let part = await reader?.read(); part !== undefined && !part.done; part = await reader?.read()) {
      const read = readEvents(rest, part.value);
      rest = read.rest;
      answer = read.events.reduce((before, { data }) => extendAnswer(before, data), answer);
      cancelAnimationFrame(drawing);
      drawing = requestAnimationFrame(() => onAnswer(answer));
    }
  } catch (error) {
    answer = { ...answer, ended: signal.aborted ? T.stopped : messageOf(error) };
  }
  cancelAnimationFrame(drawing);
  return answer;
}
