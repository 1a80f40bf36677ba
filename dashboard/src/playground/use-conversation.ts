/** The conversation of this tab. It outlives the page, so that a look at another page or a reload loses nothing. */
import { signal } from '@preact/signals';
import { EMPTY_ANSWER, extendAnswer, chatBody, readMessages, type ChatMessage } from '../decide/chat.ts';
import { messageOf, type Client } from '../io/client.ts';
import { P } from '../texts-playground.ts';
import { eachEvent } from './use-request.ts';

interface Question {
  readonly model: string;
  /** Messages of the user, or results of tools. */
  readonly added: readonly ChatMessage[];
  readonly tools: readonly unknown[];
}

export interface Conversation {
  readonly messages: readonly ChatMessage[];
  /** The response being streamed; undefined if none is. */
  readonly answer: ChatMessage | undefined;
  ask(question: Question): void;
  stop(): void;
  clear(): void;
}

const KEY = 'svc.conversation';
const messages = signal<readonly ChatMessage[]>(readMessages(sessionStorage.getItem(KEY) ?? ''));
const answer = signal<ChatMessage | undefined>(undefined);
/** Ends the request that is running. */
const running: { current?: AbortController } = {};

messages.subscribe(store);
// The part of an answer that has arrived is kept.
addEventListener('pagehide', () => {
  if (answer.peek() !== undefined) store([...messages.peek(), { ...(answer.peek() ?? EMPTY_ANSWER), ended: P.stopped }]);
});

export function useConversation(client: Client): Conversation {
  return {
    messages: messages.value,
    answer: answer.value,
    ask: (question) => void send(client, question),
    stop: () => running.current?.abort(),
    clear: () => (messages.value = []),
  };
}

async function send(client: Client, { model, added, tools }: Question): Promise<void> {
  const asked: readonly ChatMessage[] = [...messages.peek(), ...added];
  const stop = new AbortController();
  running.current = stop;
  messages.value = asked;
  answer.value = EMPTY_ANSWER;
  const body = { ...chatBody(model, asked, tools), stream: true, stream_options: { include_usage: true } };
  const last = await readAnswer(client, body, stop.signal);
  messages.value = [...asked, last];
  answer.value = undefined;
}

/** Shows the growing response at most once per frame. An error becomes part of the conversation. */
async function readAnswer(client: Client, body: object, stop: AbortSignal): Promise<ChatMessage> {
  let read = EMPTY_ANSWER;
  let drawing = 0;
  const sentAt = performance.now();
  let firstAt: number | undefined;
  try {
    const response = await client.fetch('/v1/chat/completions', { method: 'POST', body, signal: stop });
    await eachEvent(response, (data) => {
      read = extendAnswer(read, data);
      if (read.content !== '' || read.reasoning !== '') firstAt ??= performance.now();
      cancelAnimationFrame(drawing);
      drawing = requestAnimationFrame(() => (answer.value = read));
    });
  } catch (error) {
    read = { ...read, ended: stop.aborted ? P.stopped : messageOf(error) };
  }
  cancelAnimationFrame(drawing);
  const { speed } = read;
  if (speed === undefined || firstAt === undefined) return read;
  const seconds = (performance.now() - firstAt) / 1000;
  const measured = seconds > 0 && (speed.outputTokens ?? 0) > 1 ? ((speed.outputTokens ?? 0) - 1) / seconds : undefined;
  return { ...read, speed: { ...speed, firstTokenSeconds: (firstAt - sentAt) / 1000, tokensPerSecond: speed.tokensPerSecond ?? measured } };
}

/** What does not fit into the storage of the browser, such as many images, lasts until the reload. */
function store(kept: readonly ChatMessage[]): void {
  try {
    if (kept.length === 0) sessionStorage.removeItem(KEY);
    else sessionStorage.setItem(KEY, JSON.stringify(kept));
  } catch {
    sessionStorage.removeItem(KEY);
  }
}
