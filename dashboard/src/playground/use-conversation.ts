/** The state of a conversation with a slot. */
import { useEffect, useRef, useState } from 'preact/hooks';
import { EMPTY_ANSWER, extendAnswer, chatBody, type ChatMessage } from '../decide/chat.ts';
import { messageOf, type Client } from '../io/client.ts';
import { P } from '../texts-playground.ts';
import { eachEvent } from './use-request.ts';

export interface Question {
  readonly model: string;
  readonly prompt: string;
  readonly images: readonly string[];
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

export function useConversation(client: Client): Conversation {
  const [messages, setMessages] = useState<readonly ChatMessage[]>([]);
  const [answer, setAnswer] = useState<ChatMessage>();
  const running = useRef<AbortController>(null);
  const send = async ({ model, prompt, images, tools }: Question): Promise<void> => {
    const asked: readonly ChatMessage[] = [...messages, { ...EMPTY_ANSWER, role: 'user', content: prompt, images }];
    const stop = new AbortController();
    running.current = stop;
    setMessages(asked);
    setAnswer(EMPTY_ANSWER);
    const last = await readAnswer(client, chatBody(model, asked, tools), stop.signal, setAnswer);
    setMessages([...asked, last]);
    setAnswer(undefined);
  };
  useEffect(() => () => running.current?.abort(), []);
  return {
    messages,
    answer,
    ask: (question) => void send(question),
    stop: () => running.current?.abort(),
    clear: () => setMessages([]),
  };
}

/** Reports the growing response at most once per frame. An error becomes part of the conversation. */
async function readAnswer(
  client: Client,
  body: object,
  signal: AbortSignal,
  onAnswer: (answer: ChatMessage) => void,
): Promise<ChatMessage> {
  let answer = EMPTY_ANSWER;
  let drawing = 0;
  try {
    const response = await client.fetch('/v1/chat/completions', { method: 'POST', body, signal });
    await eachEvent(response, (data) => {
      answer = extendAnswer(answer, data);
      cancelAnimationFrame(drawing);
      drawing = requestAnimationFrame(() => onAnswer(answer));
    });
  } catch (error) {
    answer = { ...answer, ended: signal.aborted ? P.stopped : messageOf(error) };
  }
  cancelAnimationFrame(drawing);
  return answer;
}
