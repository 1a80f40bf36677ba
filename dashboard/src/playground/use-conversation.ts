/** The conversation of this tab. It outlives the page, so that a look at another page or a reload loses nothing. */
import { useApp, type App } from '../app-context.ts';
import { addVersion, showVersion } from '../decide/branches.ts';
import { EMPTY_ANSWER, extendAnswer, chatBody, readMessages, type ChatMessage } from '../decide/chat.ts';
import type { ChatSettings } from '../decide/chat-settings.ts';
import { messageOf, type Client } from '../io/client.ts';
import { P } from '../texts-playground.ts';
import { eachEvent } from './use-request.ts';

interface Question {
  readonly model: string;
  /** The conversation goes on after so many of its messages; the others become another version. Default: after all. */
  readonly keep?: number;
  /** Messages of the user, or results of tools. */
  readonly added: readonly ChatMessage[];
  readonly tools: readonly unknown[];
  readonly settings: ChatSettings;
}

export interface Conversation {
  readonly messages: readonly ChatMessage[];
  /** The response being streamed; undefined if none is. */
  readonly answer: ChatMessage | undefined;
  ask(question: Question): void;
  /** Shows another version of the message at `index`, with what follows it. */
  show(index: number, version: number): void;
  stop(): void;
  clear(): void;
}

const KEY = 'svc.conversation';

export function useConversation(): Conversation {
  const app = useApp();
  const { messages, answer, running } = app.conversation;
  if (messages.peek() === undefined) messages.value = readMessages(sessionStorage.getItem(KEY) ?? '');
  return {
    messages: messages.value ?? [],
    answer: answer.value,
    ask: (question) => void send(app, question),
    show(index, version) {
      messages.value = showVersion(messages.peek() ?? [], index, version);
      store(messages.value);
    },
    stop: () => running.peek()?.abort(),
    clear() {
      messages.value = [];
      sessionStorage.removeItem(KEY);
    },
  };
}

async function send({ client, conversation }: App, { model, keep, added, tools, settings }: Question): Promise<void> {
  const { messages, answer, running } = conversation;
  const before = messages.peek() ?? [];
  const asked = addVersion(before, added, keep);
  const answered = (given: ChatMessage): readonly ChatMessage[] => addVersion(before, [...added, given], keep);
  const stop = new AbortController();
  // A reload keeps the part of the answer that has arrived.
  const keepPart = (): void => store(answered({ ...(answer.peek() ?? EMPTY_ANSWER), ended: P.stopped }));
  addEventListener('pagehide', keepPart);
  running.value = stop;
  messages.value = asked;
  answer.value = EMPTY_ANSWER;
  const body = { ...chatBody(model, asked, tools, settings), stream: true, stream_options: { include_usage: true } };
  const last = await readAnswer(client, body, { stop: stop.signal, onAnswer: (read) => (answer.value = read) });
  removeEventListener('pagehide', keepPart);
  messages.value = answered(last);
  answer.value = undefined;
  store(messages.value);
}

/** What arrives in less was sent at once, which tells no speed. */
const LEAST_SECONDS = 0.1;

/** Shows the growing response at most once per frame. An error becomes part of the conversation. */
export async function readAnswer(
  client: Client,
  body: object,
  { stop, onAnswer }: { readonly stop: AbortSignal; readonly onAnswer: (answer: ChatMessage) => void },
): Promise<ChatMessage> {
  let read = EMPTY_ANSWER;
  let drawing = 0;
  const sentAt = performance.now();
  let firstAt: number | undefined;
  try {
    const response = await client.fetch('/v1/chat/completions', { method: 'POST', body, signal: stop, mayRepeat: true });
    await eachEvent(response, (data) => {
      read = extendAnswer(read, data);
      if (read.content !== '' || read.reasoning !== '') firstAt ??= performance.now();
      cancelAnimationFrame(drawing);
      drawing = requestAnimationFrame(() => onAnswer(read));
    });
  } catch (error) {
    read = { ...read, ended: stop.aborted ? P.stopped : messageOf(error) };
  }
  cancelAnimationFrame(drawing);
  const { speed } = read;
  if (speed === undefined || firstAt === undefined) return read;
  const seconds = (performance.now() - firstAt) / 1000;
  const measured = seconds >= LEAST_SECONDS && (speed.outputTokens ?? 0) > 1 ? ((speed.outputTokens ?? 0) - 1) / seconds : undefined;
  return { ...read, speed: { ...speed, firstTokenSeconds: (firstAt - sentAt) / 1000, tokensPerSecond: speed.tokensPerSecond ?? measured } };
}

/** If the storage of the browser is too small, other versions last until the reload, or the whole conversation does. */
function store(kept: readonly ChatMessage[]): void {
  for (const part of [kept, kept.map((message) => ({ ...message, versions: undefined }))])
    try {
      return sessionStorage.setItem(KEY, JSON.stringify(part));
    } catch {
      sessionStorage.removeItem(KEY);
    }
}
