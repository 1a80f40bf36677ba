/** Chat with image input and tool calls, as far as the model supports them. */
import type { ComponentChildren, JSX, RefObject } from 'preact';
import { useEffect, useLayoutEffect, useRef, useState } from 'preact/hooks';
import { useApp } from '../app-context.ts';
import { EMPTY_ANSWER, chatBody, openCalls, toolResults, type ChatMessage, type ToolCall } from '../decide/chat.ts';
import type { ChatSettings } from '../decide/chat-settings.ts';
import { conversationText } from '../decide/conversation-text.ts';
import { saveFile } from '../io/save-file.ts';
import { Button } from '../parts/button.tsx';
import { useLoaded } from '../parts/use-loaded.tsx';
import { P } from '../texts-playground.ts';
import type { Models } from '../types.ts';
import { Attachments, readTools, ToolsField } from './chat-fields.tsx';
import { ChatSettingsPanel, useChatSettings } from './chat-settings.tsx';
import { Message, type MessageProps } from './message.tsx';
import { CodeSamples } from './code-samples.tsx';
import { SlotBar, useSlotChoice } from './slot-choice.tsx';
import { useConversation, type Conversation } from './use-conversation.ts';

export function Chat(): JSX.Element {
  const choice = useSlotChoice('chat');
  const [prompt, setPrompt] = useState('');
  const [images, setImages] = useState<readonly string[]>([]);
  const [toolText, setToolText] = useState('');
  const settings = useChatSettings();
  const conversation = useConversation();
  const { messages, answer, stop } = conversation;
  const hasVision = useVision(choice.slot);
  const tools = readTools(toolText);
  const canAsk = answer === undefined && choice.slot !== '' && tools !== undefined;
  const ask = (added: readonly ChatMessage[], keep?: number): void =>
    conversation.ask({
      model: choice.slot,
      added,
      tools: tools ?? [],
      settings: settings.current,
      ...(keep === undefined ? {} : { keep }),
    });
  const send = (text: string): void => {
    if (!canAsk || text.trim() === '') return;
    const unanswered = toolResults(openCalls(messages), []);
    ask([...unanswered, { ...EMPTY_ANSWER, role: 'user', content: text, images: hasVision ? images : [] }]);
    setPrompt('');
    setImages([]);
  };
  const last = messages.findLast(({ role }) => role === 'user')?.content ?? 'Hello';
  const example = [{ ...EMPTY_ANSWER, role: 'user', content: prompt || last }] as const;
  return (
    <>
      <SlotBar choice={choice}>
        <ConversationButtons conversation={conversation} settings={settings.current} />
      </SlotBar>
      <Messages conversation={conversation} slot={choice.slot} onAsk={canAsk ? ask : undefined} onExample={send} />
      <AskForm
        prompt={prompt}
        setPrompt={setPrompt}
        canSend={canAsk && prompt.trim() !== ''}
        onSend={() => send(prompt)}
        onStop={answer === undefined ? undefined : stop}
      >
        {hasVision ? <Attachments images={images} onImages={setImages} /> : choice.slot !== '' && <p class="why">{P.noVision}</p>}
      </AskForm>
      <ChatSettingsPanel state={settings} />
      <ToolsField text={toolText} onText={setToolText} isWrong={tools === undefined} />
      <CodeSamples kind="chat" body={chatBody(choice.slot, example, tools, settings.current)} />
    </>
  );
}

interface MessagesProps {
  readonly conversation: Conversation;
  readonly slot: string;
  /** Goes on after `keep` of the messages. Undefined while nothing can be asked. */
  readonly onAsk: ((added: readonly ChatMessage[], keep?: number) => void) | undefined;
  readonly onExample: (prompt: string) => void;
}

function Messages({ conversation: { messages, answer, show }, slot, onAsk, onExample }: MessagesProps): JSX.Element {
  const shown = [...messages, ...(answer === undefined ? [] : [answer])];
  const calls = answer === undefined ? openCalls(messages) : [];
  const end = useFollow(answer ?? messages);
  const actionsOf = (message: ChatMessage, index: number): Pick<MessageProps, 'onEdit' | 'onRegenerate'> => {
    if (onAsk === undefined) return {};
    if (message.role === 'user') return { onEdit: (content) => onAsk([{ ...message, content }], index) };
    return message.role === 'assistant' && index > 0 ? { onRegenerate: () => onAsk([], index) } : {};
  };
  return (
    <section class="chat" aria-label={P.conversation} aria-live="polite" aria-busy={answer !== undefined}>
      {shown.length === 0 && slot !== '' && <Examples onChoose={onExample} />}
      {shown.map((message, index) => (
        <Message
          key={index}
          message={message}
          isOpen={answer !== undefined && index === messages.length}
          slot={slot}
          onVersion={answer === undefined ? (version) => show(index, version) : undefined}
          {...actionsOf(message, index)}
        />
      ))}
      {calls.length > 0 && <ToolResults calls={calls} onSend={(results) => onAsk?.(toolResults(calls, results))} />}
      <span ref={end} aria-hidden="true" />
    </section>
  );
}

interface ConversationButtonsProps {
  readonly conversation: Conversation;
  readonly settings: ChatSettings;
}

function ConversationButtons({ conversation: { messages, answer, clear }, settings }: ConversationButtonsProps): JSX.Element {
  const isEmpty = messages.length === 0 || answer !== undefined;
  const text = (): string => conversationText(messages, settings);
  return (
    <div class="buttons end">
      <Button label={P.exportChat} disabled={isEmpty} onClick={() => saveFile('conversation.md', 'text/markdown', text())} />
      <Button label={P.newChat} disabled={isEmpty} onClick={clear} />
    </div>
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
        {onStop === undefined ? <Button label={P.send} look="main" disabled={!canSend} /> : <Button label={P.stop} onClick={onStop} />}
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
      <Button label={P.sendResults} look="main" />
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

function Examples({ onChoose }: { readonly onChoose: (prompt: string) => void }): JSX.Element {
  return (
    <div class="ideas">
      <p>{P.tryThese}</p>
      <div class="buttons">
        {P.ideas.map((idea) => (
          <Button key={idea} label={idea} onClick={() => onChoose(idea)} />
        ))}
      </div>
    </div>
  );
}
